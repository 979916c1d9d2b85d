"""Bins of confidences on the device: of equal width and of equal mass."""

import torch
from torch import Tensor


def width_bins(confidence: Tensor, correct: Tensor, bins: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return sample count, sum of confidence and number correct of each bin (lo, hi], float64 (bins,)."""
    bin_of_sample = ((confidence * bins).ceil().long() - 1).clamp(0, bins - 1)
    members = torch.nn.functional.one_hot(bin_of_sample, bins).double()
    return members.sum(dim=0), confidence @ members, correct.double() @ members


def equal_mass_gaps(confidence: Tensor, correct: Tensor, bins: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return gap (bins,), inner edges (bins - 1,) and sizes (bins,) of the equal-mass bins of `confidence`.

    A gap is mean confidence - accuracy.
    Bins split the samples, stably sorted by confidence, as evenly as possible, the larger bins first. An edge
    is the largest confidence of the bin below it; an empty bin has gap 0.
    """
    order = torch.argsort(confidence, stable=True)
    sizes = torch.full((bins,), len(order) // bins, device=confidence.device)
    sizes[: len(order) % bins] += 1
    ends = torch.cumsum(sizes, 0)
    sorted_confidence = confidence[order]
    # Sums as a matrix product: a floating-point cumulative sum is not deterministic on CUDA.
    bin_of_rank = torch.repeat_interleave(torch.arange(bins, device=order.device), sizes)
    members = torch.nn.functional.one_hot(bin_of_rank, bins).to(confidence)
    totals = (sorted_confidence - correct[order].to(confidence)) @ members
    edges = sorted_confidence[(ends[:-1] - 1).clamp(min=0)]
    return totals / sizes.clamp(min=1), edges, sizes
