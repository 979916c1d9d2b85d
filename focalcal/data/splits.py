"""Training, validation and test splits as index arrays that depend only on sizes, labels and seed.

All random numbers come from `numpy.random.RandomState`, whose streams NumPy promises never to change.
"""

from collections.abc import Mapping

import numpy as np


def consecutive(sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Return the int64 indices of parts of the given sizes that follow one another."""
    ends = np.cumsum([*sizes.values()])
    return dict(zip(sizes, np.split(np.arange(ends[-1]), ends[:-1]), strict=True))


def shuffled_validation(count: int, validation: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return int64 (train, validation) indices: 0..count-1 shuffled, the first `validation` held out.

    With count 50,000, validation 5,000 and seed 1 this is the CIFAR split of M20 and its followers, whose
    validation indices start with 26247, 35067, 34590.
    """
    order = np.arange(count, dtype=np.int64)
    np.random.RandomState(seed).shuffle(order)
    return order[validation:], order[:validation]


def stratified(labels: np.ndarray, sizes: list[int], seed: int) -> list[np.ndarray]:
    """Return disjoint int64 index arrays of the given `sizes`, each with the overall class proportions.

    `labels` is int (n,). Within a split, each class count differs from exact proportion by at most one.
    """
    if sum(sizes) > len(labels):
        raise ValueError(f"sizes {sizes} need {sum(sizes)} samples, but there are {len(labels)}")
    random = np.random.RandomState(seed)
    remaining = random.permutation(len(labels)).astype(np.int64)
    parts = []
    for size in sizes:
        chosen = _proportional_choice(labels[remaining], size)
        parts.append(remaining[chosen])
        remaining = remaining[~chosen]
    return parts


def per_class_fraction(labels: np.ndarray, indices: np.ndarray, fraction: float, seed: int) -> np.ndarray:
    """Return the int64 subset of `indices`, in order, with `fraction` (rounded) of each class."""
    random = np.random.RandomState(seed)
    keep = np.zeros(len(indices), dtype=bool)
    for label in np.unique(labels[indices]):
        positions = np.flatnonzero(labels[indices] == label)
        count = max(1, round(fraction * len(positions)))
        keep[random.permutation(positions)[:count]] = True
    return indices[keep]


def _proportional_choice(labels: np.ndarray, size: int) -> np.ndarray:
    """Return a bool mask of `size` samples: the first of each class, in proportion to class sizes."""
    values, inverse, counts = np.unique(labels, return_inverse=True, return_counts=True)
    exact = counts * (size / max(len(labels), 1))
    quota = np.floor(exact).astype(int)
    # The largest remainders get the samples left over by rounding; the stable sort breaks ties by class.
    leftover = size - quota.sum()
    quota[np.argsort(quota - exact, kind="stable")[:leftover]] += 1
    chosen = np.zeros(len(labels), dtype=bool)
    for k in range(len(values)):
        chosen[np.flatnonzero(inverse == k)[: quota[k]]] = True
    return chosen
