"""Parse trees in the form of the Penn Treebank as arrays of nodes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from focalcal.data.prepared import NODE_COLUMNS

TREE_TOKENISATION = "words of the treebank in lower case, without its escapes"
"""What `parse_tree` does, for the record of a dataset."""
# Only a plain space separates: some words, such as "8 1/2", contain a no-break space.
_PTB_NODE = re.compile(r"[()]|[^ ()]+")
_PTB_ESCAPES = {"-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]", "-lcb-": "{", "-rcb-": "}"}


@dataclass(frozen=True)
class Node:
    """One node of a parse tree: a leaf with a word, or two children by their positions."""

    label: int
    word: str | None = None
    left: int = -1
    right: int = -1


def parse_tree(line: str) -> list[Node]:
    """Return the nodes of one binary tree in PTB form, `(3 (2 good) (2 film))`, children before parents.

    Words are in lower case, as GloVe 6B has them, without the escapes of the Penn Treebank.
    """
    nodes: list[Node] = []
    open_nodes: list[tuple[list[str], list[int]]] = []
    for part in _PTB_NODE.findall(line):
        if part == "(" and (open_nodes or not nodes):
            open_nodes.append(([], []))
        elif not open_nodes:
            raise ValueError(f"the tree {line[:60]!r} has {part!r} outside its root")
        elif part != ")":
            open_nodes[-1][0].append(part)
        else:
            texts, children = open_nodes.pop()
            nodes.append(_closed_node(texts, children, line))
            if open_nodes:
                open_nodes[-1][1].append(len(nodes) - 1)
    if open_nodes or not nodes:
        raise ValueError(f"the tree {line[:60]!r} is not closed")
    return nodes


def _closed_node(texts: list[str], children: list[int], line: str) -> Node:
    match texts, children:
        case [label, word], []:
            word = word.lower().replace("\\", "")
            return Node(int(label), _PTB_ESCAPES.get(word, word))
        case [label], [left, right]:
            return Node(int(label), None, left, right)
        case _:
            raise ValueError(f"the tree {line[:60]!r} has a node that is neither a word nor a pair")


def node_rows(trees: Sequence[Sequence[Node]], words: Sequence[str], label_of: Sequence[int]) -> np.ndarray:
    """Return int32 (n, m, 4), one row per node: word, left child, right child, `label_of[label]`; else -1."""
    number_of = {word: number for number, word in enumerate(words)}
    longest = max(len(tree) for tree in trees)
    rows = np.full((len(trees), longest, len(NODE_COLUMNS)), -1, dtype=np.int32)
    for tree_rows, tree in zip(rows, trees, strict=True):
        for row, node in zip(tree_rows, tree, strict=False):
            row[:] = number_of.get(node.word, -1), node.left, node.right, label_of[node.label]
    return rows
