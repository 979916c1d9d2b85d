"""Small made texts and trees in the prepared form, with a class that can be learned."""

import numpy as np

from focalcal.data.prepared import PreparedData

WORDS = 12
DIMENSIONS = 5


def _prepared(inputs, labels, classes):
    generator = np.random.default_rng(1)
    vectors = generator.normal(size=(WORDS, DIMENSIONS)).astype(np.float32)
    vectors[0] = 0
    count, empty = len(inputs), np.zeros(0, dtype=np.float32)
    return PreparedData(
        inputs,
        labels,
        np.arange(0, count - 24),
        np.arange(count - 24, count - 12),
        np.arange(count - 12, count),
        classes,
        empty,
        empty,
        words=np.array(["", *(f"word{i}" for i in range(1, WORDS))]),
        vectors=vectors,
    )


def texts(count=64, longest=40, classes=3):
    """Return texts of 0 to `longest` words; the words 1 to 3 betray the class."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, classes, count)
    inputs = np.zeros((count, longest), dtype=np.int32)
    for row, label in zip(inputs, labels, strict=True):
        length = generator.integers(0, longest + 1)
        if length:
            row[-length:] = generator.integers(classes + 1, WORDS, length)
            row[-generator.integers(1, length + 1)] = 1 + label
    return _prepared(inputs, labels, classes)


def random_tree(generator, leaves):
    """Return the rows of a random binary tree: labels 0 and 1, or 2 for neutral phrases."""
    rows, free = [], []
    for _ in range(leaves):
        word = int(generator.integers(1, WORDS))
        rows.append([word, -1, -1, int(generator.integers(0, 3))])
        free.append(len(rows) - 1)
    while len(free) > 1:
        at = int(generator.integers(0, len(free) - 1))
        rows.append([-1, free[at], free[at + 1], int(generator.integers(0, 3))])
        free[at : at + 2] = [len(rows) - 1]
    first = next(row[0] for row in rows if row[0] > 0)
    rows[-1][3] = first % 2
    return rows


def trees(count=60, longest=9):
    """Return trees of 1 to `longest` words; the first word betrays the class."""
    generator = np.random.default_rng(0)
    made = [random_tree(generator, int(generator.integers(1, longest + 1))) for _ in range(count)]
    inputs = np.full((count, 2 * longest - 1, 4), -1, dtype=np.int32)
    for rows, tree in zip(inputs, made, strict=True):
        rows[: len(tree)] = tree
    labels = np.array([tree[-1][3] for tree in made], dtype=np.int64)
    return _prepared(inputs, labels, 2)
