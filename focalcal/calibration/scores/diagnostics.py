"""Test predictions reduced to what tables and figures need: reliability bins and comparisons."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from focalcal.calibration.metrics import debiased_ece
from focalcal.calibration.scores.binning import reliability_bins
from focalcal.calibration.scores.predictions import Predictions
from focalcal.calibration.scores.resampling import (
    COMPARED_METRICS,
    Resampled,
    compare_resampled,
    compared_scores,
    debiased_square,
    debiased_summands,
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
    debiased_ece: float | None = None
    """This and the summands of the bootstrap are None for methods that are not compared."""
    score_summands: sparse.csc_array | None = None
    debiased_summands: sparse.csc_array | None = None


def reduce_predictions(predictions: Predictions, bins: int, *, compared: bool) -> ReducedPredictions:
    """Return what is kept of test predictions; with `compared`, also what the bootstrap needs."""
    losses = -predictions.label_logs
    reliability = reliability_bins(predictions.confidence, predictions.correct, bins)
    if not compared:
        return ReducedPredictions(losses, reliability)
    return ReducedPredictions(
        losses,
        reliability,
        debiased_ece(predictions, predictions.labels, bins),
        score_summands(predictions, bins),
        debiased_summands(predictions, bins),
    )


def diagnose(
    fits: Mapping[FitKey, ReducedPredictions], as_trained: NDArray[np.float64], resamples: int
) -> dict[str, Any]:
    """Return the diagnostics of fits on the test samples that they share, JSON-ready.

    `as_trained` (n,) are the log-losses of the model as it is. `fits` of the result: for each fit, count,
    mean confidence and accuracy (None if empty) of each bin of equal width; `nll_change`, its log-loss minus
    that as trained, with the bounds of a normal 95 % interval over test samples; for those compared,
    `debiased_ece`, its square before it is cut at 0, and the standard error of the square.
    `comparisons`: see `_comparisons`.
    """
    compared = {key: fit for key, fit in fits.items() if fit.score_summands is not None}
    # The same resamples for everything.
    columns = [fit.score_summands for fit in compared.values()]
    columns += [fit.debiased_summands for fit in compared.values()]
    means = resample_means(columns, resamples)
    scores = {key: compared_scores(found) for key, found in zip(compared, means, strict=False)}
    squares = {
        key: debiased_square(found, len(as_trained))
        for key, found in zip(compared, means[len(compared) :], strict=True)
    }
    described = []
    for (method, criterion), fit in fits.items():
        change, interval = mean_change(fit.losses, as_trained)
        entry = {"method": method, "criterion": criterion, **fit.reliability}
        entry["nll_change"] = [change, interval.low, interval.high]
        if (method, criterion) in squares:
            entry["debiased_ece"] = _rounded((fit.debiased_ece, *squares[method, criterion]))
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
        for column, metric in enumerate(COMPARED_METRICS):
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
