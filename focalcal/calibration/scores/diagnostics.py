"""Test predictions reduced to what tables and figures need: reliability bins and comparisons."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from focalcal.calibration.scores.binning import reliability_bins
from focalcal.calibration.scores.predictions import Predictions
from focalcal.calibration.scores.resampling import (
    ALL_COMPARED,
    Resampled,
    compare_resampled,
    compared_scores,
    mean_change,
    resample_means,
    score_summands,
)

AGAINST = ("ts", "fts")
"""Methods that every other one is compared with."""
DIGITS = 7
FitKey = tuple[str, str | None]
"""Method and criterion."""


@dataclass(frozen=True)
class ReducedPredictions:
    """What is kept of the test predictions (n, k) of one fit."""

    losses: NDArray[np.float64]
    """Log-loss of each sample (n,)."""
    reliability: dict[str, list]
    """As `reliability_bins` gives them."""
    score_summands: sparse.csc_array | None = None
    """What the bootstrap needs; None for methods that are not compared."""


def reduce_predictions(predictions: Predictions, bins: int, *, compared: bool) -> ReducedPredictions:
    """Return what is kept of test predictions; with `compared`, also what the bootstrap needs."""
    losses = -predictions.label_logs
    reliability = reliability_bins(predictions.confidence, predictions.correct, bins)
    summands = score_summands(predictions, bins, equal_mass=True) if compared else None
    return ReducedPredictions(losses, reliability, summands)


def diagnose(
    fits: Mapping[FitKey, ReducedPredictions], as_trained: NDArray[np.float64], bins: int, resamples: int
) -> dict[str, Any]:
    """Return the diagnostics of fits on the test samples that they share, JSON-ready.

    `as_trained` (n,) are the log-losses of the model as it is. `fits` of the result: for each fit, count,
    mean confidence and accuracy (None if empty) of each bin of equal width; `nll_change`, its log-loss minus
    that as trained, with the bounds of a normal 95 % interval over test samples. `comparisons`: see
    `_comparisons`.
    """
    summands = {key: fit.score_summands for key, fit in fits.items() if fit.score_summands is not None}
    means = resample_means(list(summands.values()), resamples)
    scores = {key: compared_scores(found, bins) for key, found in zip(summands, means, strict=True)}
    described = []
    for (method, criterion), fit in fits.items():
        change, interval = mean_change(fit.losses, as_trained)
        entry = {"method": method, "criterion": criterion, **fit.reliability}
        entry["nll_change"] = [change, interval.low, interval.high]
        described.append(entry)
    return {"samples": len(as_trained), "fits": described, "comparisons": _comparisons(scores)}


def _comparisons(scores: Mapping[FitKey, Resampled]) -> list[dict[str, Any]]:
    """Return each method against each of `AGAINST` that was fitted by the same criterion, by each metric.

    What is not fitted, such as the model as trained, is compared with the fits of every criterion. A row has
    both scores, their difference, its standard error over test samples, and z.
    """
    rows = []
    for (against, criterion), (method, own) in product(scores, scores):
        if against not in AGAINST or method == against or own not in (criterion, None):
            continue
        for column, metric in enumerate(ALL_COMPARED):
            first, second = scores[method, own][column], scores[against, criterion][column]
            found = compare_resampled(first, second)
            numbers: dict[str, Any] = {
                "value": first.value,
                "against_value": second.value,
                "difference": found.difference,
                "error": found.error,
                "z": found.z,
            }
            rows.append(
                {"method": method, "against": against, "criterion": criterion, "metric": metric}
                | dict(zip(numbers, _rounded(numbers.values()), strict=True))
            )
    return rows


def _rounded(values: Iterable[float]) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values]
