"""Batches of a dataset that resides on the device, and predictions; `text_batches` has those of texts."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from focalcal.data.prepared import PreparedData
from focalcal.training.recipes import Recipe


@dataclass(frozen=True)
class Batch:
    """The samples of one step: what the network reads, and what its rows of logits say about samples.

    Images and features have one row of logits per sample. Other kinds of inputs, such as trees with a label
    at every node, say in a subclass which rows belong to a sample.
    """

    inputs: Any
    labels: Tensor
    """int64 (n,), the classes of the samples."""

    @property
    def targets(self) -> Tensor:
        """The labels of the network's rows, which the loss compares with them."""
        return self.labels

    def sample_losses(self, values: Tensor) -> Tensor:
        """Return the loss of each sample, (n,), from that of each row."""
        return values

    def sample_logits(self, logits: Tensor) -> Tensor:
        """Return the logits of each sample, (n, K), from the rows."""
        return logits


class ResidentSplit(ABC):
    """The samples of one split on the device; each kind of inputs batches and moves itself."""

    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def training_batch(self, draw: "EpochDraw", part: slice, _recipe: Recipe) -> Batch:
        """Return the samples that the epoch's order has at `part`."""
        return self.batch(draw.order[part])

    @abstractmethod
    def batch(self, chosen: Tensor) -> Batch:
        """Return the samples `chosen`, int64 indices into the split, as they are evaluated."""


@dataclass(frozen=True)
class ResidentArrays(ResidentSplit):
    """Samples of equal shape in one tensor: images or features."""

    inputs: Tensor
    """uint8 (n, H, W, C) images or float32 (n, d) features."""
    labels: Tensor
    mean: Tensor
    """Subtracted before division by `std`, in the units of `inputs`: (d,), or (W C,) for a row of pixels."""
    std: Tensor

    @classmethod
    def of(cls, data: PreparedData, indices: np.ndarray, device: torch.device) -> "ResidentArrays":
        """Return the samples `indices` of `data`, copied to `device` once."""
        inputs = torch.from_numpy(np.take(data.inputs, indices, axis=0))
        mean, std = torch.tensor(data.mean), torch.tensor(data.std)
        if inputs.dtype == torch.uint8:
            inputs = inputs.permute(0, 2, 3, 1).contiguous()
            mean, std = (255 * values.repeat(inputs.shape[2]) for values in (mean, std))
        labels = torch.from_numpy(data.labels[indices])
        return cls(inputs.to(device), labels.to(device), mean.to(device), std.to(device))

    def training_batch(self, draw: "EpochDraw", part: slice, recipe: Recipe) -> Batch:
        """Return the samples at `part` of the epoch's order, augmented as the recipe says."""
        chosen = draw.order[part]
        inputs = self.inputs.index_select(0, chosen)
        if inputs.dtype == torch.uint8 and (recipe.crop_padding > 0 or recipe.flip):
            inputs = crop_and_flip(inputs, recipe.crop_padding, draw.offsets[part], draw.flips[part])
        return Batch(self.normalised(inputs), self.labels[chosen])

    def batch(self, chosen: Tensor) -> Batch:
        """Return the samples `chosen`."""
        return Batch(self.normalised(self.inputs.index_select(0, chosen)), self.labels[chosen])

    def normalised(self, inputs: Tensor) -> Tensor:
        """Return float32 network inputs, (n, d), or (n, C, H, W) in channels-last memory order."""
        if inputs.dtype != torch.uint8:
            return (inputs - self.mean) / self.std
        # Whole rows of pixels at a time, since a broadcast over three channels is not vectorised.
        rows = inputs.flatten(2).float().sub_(self.mean).div_(self.std)
        return rows.view(inputs.shape).permute(0, 3, 1, 2)


@dataclass(frozen=True)
class EpochDraw:
    """All random choices for one epoch's data, drawn on the CPU so that they are the same on every device."""

    order: Tensor
    offsets: Tensor
    flips: Tensor

    @classmethod
    def of(cls, seed: int, epoch: int, count: int, recipe: Recipe, device: torch.device) -> "EpochDraw":
        """Return the draw for (seed, epoch), the same in a resumed run as in an uninterrupted one."""
        generator = torch.Generator().manual_seed(derived_seed(seed, epoch))
        order = torch.randperm(count, generator=generator)
        offsets = torch.randint(0, 2 * recipe.crop_padding + 1, (count, 2), generator=generator)
        flips = torch.rand(count, generator=generator) < (0.5 if recipe.flip else 0.0)
        return cls(order.to(device), offsets.to(device), flips.to(device))


def derived_seed(seed: int, epoch: int) -> int:
    """Return a 63-bit seed that differs for every (seed, epoch)."""
    return int(np.random.SeedSequence([seed, epoch]).generate_state(1, np.uint64)[0] >> np.uint64(1))


def training_batches(
    split: ResidentSplit, draw: EpochDraw, recipe: Recipe, first_batch: int = 0
) -> Iterator[Batch]:
    """Yield the epoch's batches from `first_batch` on."""
    size = recipe.batch_size
    for start in range(first_batch * size, len(split), size):
        yield split.training_batch(draw, slice(start, start + size), recipe)


def crop_and_flip(images: Tensor, padding: int, offsets: Tensor, flips: Tensor) -> Tensor:
    """Return crops of the zero-padded images, mirrored where `flips`, (n, H, W, C).

    Images are channels-last; `offsets` int64 (n, 2) are the crops' top and left corners in 0..2 padding;
    `flips` bool (n,). One gather does both: a mirrored crop reads its columns backwards.
    """
    count, height, width, channels = images.shape
    if padding:
        images = torch.nn.functional.pad(images, (0, 0, padding, padding, padding, padding))
    padded_height, padded_width = height + 2 * padding, width + 2 * padding
    rows = offsets[:, :1] + torch.arange(height, device=images.device)
    rows = rows + padded_height * torch.arange(count, device=images.device)[:, None]
    columns = torch.arange(width, device=images.device)
    columns = offsets[:, 1:] + torch.where(flips[:, None], width - 1 - columns, columns)
    pixels = padded_width * rows[:, :, None] + columns[:, None, :]
    # Twice as fast on a CPU as indexing with one tensor per dimension.
    chosen = images.reshape(-1, channels).index_select(0, pixels.reshape(-1))
    return chosen.view(count, height, width, channels)


@torch.no_grad()
def predict(network: nn.Module, split: ResidentSplit, batch_size: int, count: int | None = None) -> Tensor:
    """Return float32 logits (n, K) of the first `count` samples, by default all, in evaluation mode.

    They do not depend on the batch size.
    """
    network.eval()
    logits = []
    indices = torch.arange(len(split), device=split.labels.device)[:count]
    for chosen in indices.split(batch_size):
        batch = split.batch(chosen)
        logits.append(batch.sample_logits(network(batch.inputs)).float())
    return torch.cat(logits)
