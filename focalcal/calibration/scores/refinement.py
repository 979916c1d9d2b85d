"""Refinement: what is left of a proper score after recalibration, estimated on held-out folds.

A proper score is calibration error plus refinement, and refinement is the least expected score that a map of
the predictions can reach. Berta, Holzmüller, Jordan & Bach (2025, "Rethinking early stopping: refine, then
calibrate") estimate it by the score after temperature scaling, which has one parameter and hence
little variance. Here the temperature of each of five folds is fitted by log-loss to the other four, so no
sample is scored by a map that has seen its label. The estimate of refinement is an upper bound up to noise,
that of calibration error a lower one: an error that no temperature repairs counts as refinement.
"""

import numpy as np
from numpy.typing import NDArray

from focalcal.theory.top_class import row_blocks

FOLDS = 5
SLOPES = (1e-2, 1e2)
"""Range of 1 / T. On samples that are all classified correctly the log-loss falls for ever with T."""
LARGEST_FACTOR = 4.0
"""Greatest ratio of a slope and the next of Halley's method."""
CENTRED = 1e-4
"""How close, relatively, a point of expansion is to the slope with the least log-loss."""
NEAR = 0.03
"""A fold whose slope is relatively this close to the point of expansion needs one step of Halley's method:
what it then misses is of third order, about 1e-4 of the slope and at most 1e-7 of the log-loss."""
MOST_STEPS = 50


def held_out_scores(logs: NDArray[np.float64], labels: NDArray[np.int64]) -> tuple[float, float]:
    """Return log-loss and Brier score of temperature-scaled predictions, each fold scaled by the others.

    `logs` are finite log-probabilities (n, k). Fewer than two samples cannot be recalibrated: they are scored
    as they are.
    """
    # The largest power of each row is then 1: none overflows, and no sum underflows however large the slope.
    logs = logs - logs.max(axis=1, keepdims=True)
    slopes = held_out_slopes(logs, labels)
    totals, squares = np.empty(len(labels)), np.empty(len(labels))
    for block in row_blocks(*logs.shape):
        powers = logs[block] * slopes[block, None]
        np.exp(powers, out=powers)
        totals[block] = np.einsum("ij->i", powers)
        squares[block] = np.einsum("ij,ij->i", powers, powers)
    of_labels = slopes * logs[np.arange(len(labels)), labels]
    nll = np.log(totals) - of_labels
    return float(nll.mean()), float((squares / totals**2 - 2 * np.exp(-nll) + 1).mean())


def held_out_slopes(logs: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return 1 / T for each sample (n,), fitted by log-loss to the folds that the sample is not in."""
    count = len(labels)
    if count < 2:
        return np.ones(count)
    folds = min(FOLDS, count)
    fold = np.random.default_rng(0).permutation(count) % folds
    common, derivatives = _expansion(logs, labels, 1.0)
    of_folds = np.stack([np.bincount(fold, derivative, folds) for derivative in derivatives])
    slopes = _improved(common, derivatives.sum(axis=1, keepdims=True) - of_folds)
    for number in np.flatnonzero(np.abs(slopes - common) > NEAR * common):
        others = fold != number
        near, derivatives = _expansion(logs[others], labels[others], slopes[number])
        slopes[number] = _improved(near, derivatives.sum(axis=1))
    return slopes[fold]


def _expansion(
    logs: NDArray[np.float64], labels: NDArray[np.int64], slope: float
) -> tuple[float, NDArray[np.float64]]:
    """Return a slope within `CENTRED` of that with the least log-loss, and the derivatives (3, n) there."""
    for _ in range(MOST_STEPS):
        derivatives = _derivatives(logs, labels, slope)
        previous, slope = slope, float(_improved(slope, derivatives.sum(axis=1)))
        if abs(slope - previous) <= CENTRED * previous:
            break
    return previous, derivatives


def _improved(slope: float, derivatives: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the next slope of Halley's method, in `SLOPES`; log-loss is convex in the slope."""
    first, second, third = derivatives
    second = np.maximum(second, np.finfo(float).tiny)
    # An infinite ratio times a third derivative of 0 is NaN, which fmax passes over.
    with np.errstate(over="ignore", invalid="ignore"):
        step = first / np.fmax(second - first / second * third / 2, second / 2)
    bounded = np.clip(slope - step, slope / LARGEST_FACTOR, slope * LARGEST_FACTOR)
    return np.clip(bounded, *SLOPES)


def _derivatives(logs: NDArray[np.float64], labels: NDArray[np.int64], slope: float) -> NDArray[np.float64]:
    """Return each sample's first three derivatives of log-loss by the slope, (3, n).

    They are the cumulants of the log-probabilities under the scaled prediction, the first minus the label's.
    """
    moments = np.empty((3, len(labels)))
    for block in row_blocks(*logs.shape):
        own = logs[block]
        powers = own * slope
        np.exp(powers, out=powers)
        totals = np.einsum("ij->i", powers)
        for moment in moments:
            powers *= own
            moment[block] = np.einsum("ij->i", powers) / totals
    mean, square, cube = moments
    of_labels = logs[np.arange(len(labels)), labels]
    return np.stack([mean - of_labels, square - mean**2, cube - mean * (3 * square - 2 * mean**2)])
