"""The samples of a split on the device, by the kind of their inputs."""

from typing import Any

import numpy as np
import torch

from focalcal.data.prepared import PreparedData
from focalcal.training.batches import ResidentArrays, ResidentSplit
from focalcal.training.text_batches import ResidentTexts, ResidentTrees

_RESIDENTS: dict[str, Any] = {
    "images": ResidentArrays,
    "features": ResidentArrays,
    "tokens": ResidentTexts,
    "trees": ResidentTrees,
}


def resident_split(data: PreparedData, indices: np.ndarray, device: torch.device) -> ResidentSplit:
    """Return the samples `indices` of `data`, copied to `device` once."""
    return _RESIDENTS[data.kind].of(data, indices, device)
