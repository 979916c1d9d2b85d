"""Calibrators compared on one test set, by a bootstrap over the samples that they share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from focalcal.calibration.scores.binning import width_index
from focalcal.calibration.scores.predictions import Predictions
from focalcal.common.intervals import NORMAL_HALF_WIDTH, Interval

COMPARED_METRICS = ("nll", "brier", "ece")
"""Scores of paired comparisons, proper scores first."""
ALL_COMPARED = (*COMPARED_METRICS, "adaece")
"""Those of fits to whole validation splits, which may be fitted by the last one."""
CHUNK = 64
"""Resamples whose weights are in memory at the same time."""


@dataclass(frozen=True)
class SampleComparison:
    """The difference of two scores on one test set, with its uncertainty over test samples."""

    difference: float
    error: float
    """Standard error."""
    z: float
    """The difference, its bias removed, in standard errors; 0 for scores that never differ."""


@dataclass(frozen=True)
class Resampled:
    """A score, or several side by side (c,), with its value on each resample (r,) or (r, c)."""

    value: NDArray[np.float64]
    draws: NDArray[np.float64]

    def __getitem__(self, column: int) -> "Resampled":
        return Resampled(self.value[column], self.draws[:, column])


def resample_weights(samples: int, resamples: int) -> Iterator[NDArray[np.float64]]:
    """Yield the weight of each sample in each resample, in chunks of at most `CHUNK` rows (r, n) of sum 1."""
    rng = np.random.default_rng(0)
    for start in range(0, resamples, CHUNK):
        drawn = [rng.integers(samples, size=samples) for _ in range(min(CHUNK, resamples - start))]
        yield np.array([np.bincount(rows, minlength=samples) for rows in drawn]) / samples


def resample_means(columns: Sequence[sparse.csc_array], resamples: int) -> list[Resampled]:
    """Return the column means of arrays (n, c) of the same samples, and those of the same resamples."""
    found: list[list[NDArray[np.float64]]] = [[] for _ in columns]
    samples = columns[0].shape[0] if columns else 0
    for weights in resample_weights(samples, resamples):
        by_sample = np.ascontiguousarray(weights.T)
        for draws, values in zip(found, columns, strict=True):
            draws.append((values.T @ by_sample).T)
    return [
        Resampled(values.mean(axis=0), np.concatenate(draws))
        for draws, values in zip(found, columns, strict=True)
    ]


def score_summands(predictions: Predictions, bins: int, *, equal_mass: bool = False) -> sparse.csc_array:
    """Return each sample's log-loss, Brier score and, in the column of its bin, gap, (n, 2 + bins).

    The `COMPARED_METRICS` are functions of their means: the ECE is the sum of the bins' absolute means. With
    `equal_mass`, the gaps follow in the columns of bins of equal mass ("split"), (n, 2 + 2 bins), for
    `ALL_COMPARED`. Resamples keep these bins: their masses are then equal on average.
    """
    confidence, correct = predictions.confidence, predictions.correct
    label_probs = predictions.probs[predictions.rows, predictions.labels]
    brier = np.einsum("ij,ij->i", predictions.probs, predictions.probs) - 2 * label_probs + 1
    indices = [width_index(confidence, bins), *([predictions.mass_index(bins)] if equal_mass else [])]
    gaps = [_spread(index, confidence - correct, bins) for index in indices]
    losses = sparse.csc_array(np.column_stack([-predictions.label_logs, brier]))
    return sparse.hstack([losses, *gaps], format="csc")


def compared_scores(means: Resampled, bins: int) -> Resampled:
    """Return the `ALL_COMPARED` scores, (4,), given the means of `score_summands` with `equal_mass`."""
    return Resampled(metrics_of_means(means.value, bins), metrics_of_means(means.draws, bins))


def compare_resampled(first: Resampled, second: Resampled) -> SampleComparison:
    """Return first minus second, for a score (scalar) of each on the same resamples.

    Binned calibration errors of a finite sample are biased upwards, most for the better calibrated predictor,
    and each resample adds that bias again: z takes it off.
    """
    difference, draws = float(first.value - second.value), first.draws - second.draws
    error = float(np.std(draws, ddof=1))
    z = (2 * difference - float(np.mean(draws))) / error if error > 0 else 0.0
    return SampleComparison(difference, error, z)


def mean_change(losses: NDArray[np.float64], reference: NDArray[np.float64]) -> tuple[float, Interval]:
    """Return the mean of paired differences of losses (n,), with its normal interval over samples."""
    differences = losses - reference
    change = float(differences.mean())
    width = NORMAL_HALF_WIDTH * float(differences.std(ddof=1)) / len(differences) ** 0.5
    return change, Interval(change - width, change + width)


def _spread(index: NDArray[np.int64], values: NDArray, bins: int) -> sparse.csc_array:
    """Return values (n,) in the column of their bin, 0 elsewhere, (n, bins)."""
    rows = np.arange(len(index))
    return sparse.csc_array((values.astype(np.float64), (rows, index)), shape=(len(index), bins))


def metrics_of_means(means: NDArray[np.float64], bins: int) -> NDArray[np.float64]:
    """Return two losses and one error for each set of bins from means of the summands."""
    gaps = means[..., 2:].reshape(*means.shape[:-1], -1, bins)
    return np.concatenate([means[..., :2], np.abs(gaps).sum(axis=-1)], axis=-1)
