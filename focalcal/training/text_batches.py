"""Batches of texts, one after the other, and of trees, level by level across sentences."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from focalcal.data.prepared import PreparedData
from focalcal.training.batches import Batch, ResidentSplit


@dataclass(frozen=True)
class Texts:
    """The texts of a batch, one after the other."""

    words: Tensor
    """int32 (words,), the numbers of all words."""
    lengths: Tensor
    """int64 (n,), in the CPU's memory."""
    width: int
    """The length that a text of the dataset can have."""


@dataclass(frozen=True)
class ResidentTexts(ResidentSplit):
    """Texts as word numbers, right-aligned after zeros."""

    numbers: Tensor
    """int32 (n, m)."""
    lengths: Tensor
    """int64 (n,), in the CPU's memory."""
    labels: Tensor

    @classmethod
    def of(cls, data: PreparedData, indices: np.ndarray, device: torch.device) -> "ResidentTexts":
        """Return the texts `indices` of `data`, copied to `device` once."""
        numbers = torch.from_numpy(np.take(data.inputs, indices, axis=0))
        lengths = (numbers != 0).sum(dim=1)
        return cls(numbers.to(device), lengths, torch.from_numpy(data.labels[indices]).to(device))

    def batch(self, chosen: Tensor) -> Batch:
        """Return the texts `chosen` without their padding."""
        numbers = self.numbers[chosen]
        texts = Texts(numbers[numbers != 0], self.lengths[chosen.cpu()], numbers.shape[1])
        return Batch(texts, self.labels[chosen])


@dataclass(frozen=True)
class TreeLevels:
    """The nodes of a batch of binary trees: all leaves first, then level by level."""

    words: Tensor
    """int64 (leaves,)."""
    children: Tensor
    """int64 (inner nodes, 2): rows of the left and the right child, which are on lower levels."""
    ends: tuple[int, ...]
    """The row after the last node of each level; the first level is that of the leaves."""


@dataclass(frozen=True)
class TreeBatch(Batch):
    """Sentences as trees; every node has a label and a row of K + 1 logits: the classes, then neutral."""

    inputs: TreeLevels
    labels: Tensor
    node_labels: Tensor
    sentences: Tensor
    """int64 (nodes,), the sentence of each row."""
    roots: Tensor
    """int64 (n,), the row of each sentence's root."""

    @property
    def targets(self) -> Tensor:
        """The label of every node."""
        return self.node_labels

    def sample_losses(self, values: Tensor) -> Tensor:
        """Return the sum over the nodes of each sentence, as Tai et al. (2015) train."""
        return values.new_zeros(len(self.labels)).index_add(0, self.sentences, values)

    def sample_logits(self, logits: Tensor) -> Tensor:
        """Return the logits of the roots without that of neutral, which no sentence is."""
        return logits[self.roots, :-1]


@dataclass(frozen=True)
class ResidentTrees(ResidentSplit):
    """Trees as a table of the nodes of all sentences, and the first row of each sentence in it."""

    nodes: Tensor
    """int64 (nodes, 5): word, left child, right child, label, level; children count within the sentence."""
    starts: Tensor
    """int64 (n + 1,)."""
    labels: Tensor

    @classmethod
    def of(cls, data: PreparedData, indices: np.ndarray, device: torch.device) -> "ResidentTrees":
        """Return the trees `indices` of `data`, copied to `device` once."""
        trees = np.take(data.inputs, indices, axis=0).astype(np.int64)
        levels = np.zeros(trees.shape[:2], dtype=np.int64)
        rows = np.arange(len(trees))
        for node in range(trees.shape[1]):
            left, right = trees[:, node, 1], trees[:, node, 2]
            above = 1 + np.maximum(levels[rows, left], levels[rows, right])
            levels[:, node] = np.where(left >= 0, above, 0)
        exists = trees[:, :, 3] >= 0
        nodes = np.concatenate([trees, levels[:, :, None]], axis=2)[exists]
        starts = np.concatenate([[0], np.cumsum(exists.sum(axis=1))])
        labels = torch.from_numpy(data.labels[indices])
        return cls(torch.from_numpy(nodes).to(device), torch.from_numpy(starts).to(device), labels.to(device))

    def batch(self, chosen: Tensor) -> TreeBatch:
        """Return the trees `chosen`, their nodes sorted by level."""
        starts, sizes = self.starts[chosen], self.starts[chosen + 1] - self.starts[chosen]
        firsts = sizes.cumsum(0) - sizes
        sentences = torch.repeat_interleave(torch.arange(len(chosen), device=chosen.device), sizes)
        rows = torch.arange(len(sentences), device=chosen.device)
        nodes = self.nodes[rows + (starts - firsts)[sentences]]
        levels, order = nodes[:, 4].sort(stable=True)
        row_of = torch.empty_like(order)
        row_of[order] = rows
        ends = tuple(torch.bincount(levels).cumsum(0).tolist())
        inner, inner_sentences = nodes[order[ends[0] :]], sentences[order[ends[0] :]]
        return TreeBatch(
            inputs=TreeLevels(
                words=nodes[order[: ends[0]], 0],
                children=row_of[inner[:, 1:3] + firsts[inner_sentences][:, None]],
                ends=ends,
            ),
            labels=self.labels[chosen],
            node_labels=nodes[order, 3],
            sentences=sentences[order],
            roots=row_of[firsts + sizes - 1],
        )
