"""Bins of confidences: of equal width or of equal mass.

- "width": `bins` bins of equal width, `(low, high]`; a probability of exactly 0 joins the first one.
- "mass": bins of (nearly) equal numbers of samples, in one of two variants. "split" sorts the samples by
  confidence, ties in sample order, and cuts the sequence as `np.array_split` does (fewer samples than bins:
  one sample per bin). "authors" is the definition in the code released with M20, whose edges interpolate the
  sorted confidences at `linspace(0, n, bins + 1)` and take `(low, high]`: the smallest confidence, and
  everything tied with it, is never counted.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

BINNINGS = ("width", "mass")
MASS_VARIANTS = ("split", "authors")
EDGE_ROUNDING = 2e-12
"""Confidences within this relative distance of a bin edge, such as 1/2 for two tied classes, count as lying
on it. Twice the largest error of the fast kernels, so that they bin as the definitions do."""


@dataclass(frozen=True)
class Binned:
    """Predicted chances of events, in bins: their number, the sum of chance minus outcome, the events."""

    counts: NDArray[np.int64]
    gaps: NDArray[np.float64]
    hits: NDArray[np.number]


def check_binning(bins: int, binning: str, variant: str) -> None:
    """Raise ValueError naming the first argument that is not allowed."""
    if not isinstance(bins, int | np.integer) or bins < 1:
        raise ValueError(f"bins is {bins!r}; expected an integer >= 1")
    for name, value, allowed in (("binning", binning, BINNINGS), ("variant", variant, MASS_VARIANTS)):
        if value not in allowed:
            raise ValueError(f"{name} is {value!r}; expected one of {', '.join(allowed)}")


def bin_gaps(
    confidences: NDArray[np.float64],
    correct: NDArray[np.bool_],
    bins: int,
    binning: str,
    variant: str,
    order: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return each bin's number of samples and its sum of (confidence - correct).

    `order` numbers the samples by rising confidence, if that is known, ties in sample order.
    """
    check_binning(bins, binning, variant)
    gaps = confidences - correct
    if binning == "mass" and variant == "split":
        order = np.argsort(confidences, kind="stable") if order is None else order
        groups = np.array_split(gaps[order], bins)
        return np.array([len(group) for group in groups]), np.array([group.sum() for group in groups])
    if binning == "mass":
        edges = equal_mass_edges(confidences, bins) * (1 + EDGE_ROUNDING)
        index = np.searchsorted(edges, confidences, side="left") - 1
    else:
        index = width_index(confidences, bins)
    counted = (index >= 0) & (index < bins)
    index = index[counted]
    return np.bincount(index, minlength=bins), weighted_counts(index, gaps[counted], bins)


def weighted_counts(index: NDArray[np.int64], weights: ArrayLike, bins: int) -> NDArray[np.float64]:
    """Return the sum of the weights in each bin, float64 (bins,)."""
    return np.bincount(index, weights, bins).astype(np.float64, copy=False)


def inner_edges(bins: int) -> NDArray[np.float64]:
    """Return the `bins - 1` edges between bins of equal width, each just above where it is meant to be."""
    return np.linspace(0.0, 1.0, bins + 1)[1:-1] * (1 + EDGE_ROUNDING)


def width_index(values: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
    """Return the number of the bin of equal width, `(low, high]`, of each value."""
    edges = inner_edges(bins)
    index = np.zeros(values.shape, dtype=np.int64)
    # Most probabilities are in the first bin where there are many classes.
    above = values > (edges[0] if bins > 1 else np.inf)
    index[above] = np.searchsorted(edges, values[above], side="left")
    return index


def reliability_bins(
    confidence: NDArray[np.float64], correct: NDArray[np.bool_], bins: int
) -> dict[str, list]:
    """Return count, mean confidence and accuracy of each bin `(low, high]` of equal width, None if empty."""
    index = width_index(confidence, bins)
    count = np.bincount(index, minlength=bins)
    found: dict[str, list] = {"count": count.tolist()}
    for name, values in (("confidence", confidence), ("accuracy", correct)):
        sums = np.bincount(index, values, bins)
        found[name] = [float(total / size) if size else None for total, size in zip(sums, count, strict=True)]
    return found


def equal_mass_edges(confidences: NDArray[np.float64], bins: int) -> NDArray[np.float64]:
    """Return the `bins + 1` edges of M20's released equal-mass binning ("authors")."""
    count = len(confidences)
    return np.interp(np.linspace(0, count, bins + 1), np.arange(count), np.sort(confidences))


def split_sizes(samples: int, bins: int) -> NDArray[np.int64]:
    """Return the sizes of the parts into which `np.array_split` cuts this many samples."""
    return samples // bins + (np.arange(bins) < samples % bins)
