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

FOLDS = 5
SLOPES = (1e-2, 1e2)
"""Range of 1 / T. On samples that are all classified correctly the log-loss falls for ever with T."""
LARGEST_FACTOR = 4.0
"""Greatest ratio of a slope and the next of Newton's method."""
SLOPE_TOLERANCE = 1e-6
ONE_STEP = 0.01
"""A fold whose slope is relatively this close to that of all samples needs one step of Newton's method: what
it then misses is of second order, about 1e-4 of the slope and 1e-8 of the log-loss."""
MOST_STEPS = 50


def held_out_scores(logs: NDArray[np.float64], labels: NDArray[np.int64]) -> tuple[float, float]:
    """Return log-loss and Brier score of temperature-scaled predictions, each fold scaled by the others.

    `logs` are finite log-probabilities (n, k). Fewer than two samples cannot be recalibrated: they are scored
    as they are.
    """
    slopes = held_out_slopes(logs, labels)
    powers = np.exp(logs * slopes[:, None])
    totals = powers.sum(axis=1)
    rows = np.arange(len(labels))
    nll = np.log(totals) - slopes * logs[rows, labels]
    label_probs = powers[rows, labels] / totals
    squares = np.einsum("ij,ij->i", powers, powers) / totals**2
    return float(nll.mean()), float((squares - 2 * label_probs + 1).mean())


def held_out_slopes(logs: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return 1 / T for each sample (n,), fitted by log-loss to the folds that the sample is not in."""
    count = len(labels)
    if count < 2:
        return np.ones(count)
    folds = min(FOLDS, count)
    fold = np.random.default_rng(0).permutation(count) % folds
    overall = fitted_slope(logs, labels)
    first, second = (
        derivative.sum() - np.bincount(fold, derivative, folds)
        for derivative in _derivatives(logs, labels, overall)
    )
    slopes = np.clip(overall - first / np.maximum(second, np.finfo(float).tiny), *SLOPES)
    for number in np.flatnonzero(np.abs(slopes - overall) > ONE_STEP * overall):
        others = fold != number
        slopes[number] = fitted_slope(logs[others], labels[others], overall)
    return slopes[fold]


def fitted_slope(logs: NDArray[np.float64], labels: NDArray[np.int64], start: float = 1.0) -> float:
    """Return the 1 / T in `SLOPES` with the least log-loss, by Newton's method: log-loss is convex in it."""
    slope = start
    for _ in range(MOST_STEPS):
        first, second = (derivative.sum() for derivative in _derivatives(logs, labels, slope))
        aim = slope - first / max(second, np.finfo(float).tiny)
        bounded = np.clip(aim, slope / LARGEST_FACTOR, slope * LARGEST_FACTOR)
        previous, slope = slope, float(np.clip(bounded, *SLOPES))
        if abs(slope - previous) <= SLOPE_TOLERANCE * previous:
            break
    return slope


def _derivatives(
    logs: NDArray[np.float64], labels: NDArray[np.int64], slope: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return each sample's first and second derivative of log-loss by the slope, both (n,)."""
    # The largest log-probability is near 0, so no power overflows and a sum is at least about 1.
    powers = np.exp(logs * slope)
    totals = powers.sum(axis=1)
    means = np.einsum("ij,ij->i", powers, logs) / totals
    squares = np.einsum("ij,ij,ij->i", powers, logs, logs) / totals
    return means - logs[np.arange(len(labels)), labels], squares - means**2
