"""One run reduced to what figures and sample statistics need: reliability bins, ECE against T, intervals."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.binning import reliability_bins, width_index
from focalcal.calibration.calibrators import load_calibrator
from focalcal.calibration.catalogue import METHODS
from focalcal.calibration.logits_io import RunLogits, Split
from focalcal.calibration.metrics import debiased_ece
from focalcal.calibration.predictions import Predictions
from focalcal.calibration.run import context_of
from focalcal.reporting.statistics.samples import (
    COMPARED_METRICS,
    Resampled,
    compare_resampled,
    compared_scores,
    debiased_interval,
    debiased_summands,
    resample_means,
    score_summands,
)

CURVE_POINTS = 97
LEAST_CURVE = (0.25, 4.0)
"""Temperatures that every curve spans, so that a narrow search is shown with its surroundings."""
AGAINST = ("ts", "fts")
"""Methods that every other one is compared with."""
DIGITS = 7
FitKey = tuple[str, str | None]
"""Method and criterion."""


def summarise_run(
    logits: RunLogits, fits: Mapping[str, Any], criterion: str, resamples: int
) -> dict[str, Any]:
    """Return a run's diagnostics on test data, JSON-ready; `fits` is its fits.json.

    `reliability`: for each method (the fit chosen by `criterion`, else its first) its parameters and, for
    each equal-width bin, count, mean confidence and accuracy (None if empty). `debiased_ece`: for the shown
    ones, the debiased ECE and its 95 % interval over test samples. `curve`: ECE of the logits divided by each
    of `temperatures`, which span all that were searched. `comparisons`: each shown method against TS and FTS
    chosen by the same criterion, see `_comparisons`.
    """
    test, context = logits.test, context_of(fits["spec"])
    chosen = choose_fits(fits["fits"], criterion)
    reliability, errors = [], {}
    summands: dict[FitKey, NDArray[np.float64]] = {}
    debiased: dict[str, NDArray[np.float64]] = {}
    # One fit after the other: the predictions of all would not fit into memory for a thousand classes.
    for fit in fits["fits"]:
        method, shown = fit["method"], METHODS[fit["method"]].shown
        if not shown and fit is not chosen[method]:
            continue
        predictions = Predictions.from_logs(load_calibrator(fit).predict_log_proba(test.logits), test.labels)
        if fit is chosen[method]:
            identity = {key: fit[key] for key in ("method", "criterion", "parameters")}
            reliability.append({**identity, **_rounded_bins(predictions, context.bins)})
        if shown:
            summands[method, fit["criterion"]] = score_summands(predictions, context.bins)
        if shown and fit is chosen[method]:
            errors[method] = debiased_ece(predictions, test.labels, context.bins)
            debiased[method] = debiased_summands(predictions, context.bins)
    # The same resamples for everything.
    means = iter(resample_means([*summands.values(), *debiased.values()], resamples))
    scores = {key: compared_scores(next(means)) for key in summands}
    intervals = {method: debiased_interval(next(means), len(test.labels)) for method in debiased}
    temperatures = curve_grid(context.temperatures)
    return {
        "run": dict(fits["run"]),
        "bins": context.bins,
        "criterion": criterion,
        "samples": len(test.labels),
        "reliability": reliability,
        "debiased_ece": {
            method: _rounded((errors[method], interval.low, interval.high))
            for method, interval in intervals.items()
        },
        "curve": {
            "temperatures": _rounded(temperatures),
            "ece": _rounded(ece_curve(test, temperatures, context.bins)),
        },
        "comparisons": _comparisons(scores),
    }


def choose_fits(fits: Sequence[Mapping[str, Any]], criterion: str) -> dict[str, Mapping[str, Any]]:
    """Return one fit per method: the one chosen by `criterion`, else its first."""
    chosen: dict[str, Mapping[str, Any]] = {}
    for fit in fits:
        if fit["method"] not in chosen or fit["criterion"] == criterion:
            chosen[fit["method"]] = fit
    return chosen


def ece_of_bins(index: NDArray, gap: NDArray, bins: int) -> float:
    """Return the ECE from each sample's bin (n,) and its confidence minus correctness (n,)."""
    return float(np.abs(np.bincount(index, gap, bins)).sum() / len(gap))


def curve_grid(searched: NDArray) -> NDArray[np.float64]:
    """Return temperatures (CURVE_POINTS,), equally spaced by ratio, that span those searched (t,)."""
    return np.geomspace(min(LEAST_CURVE[0], searched[0]), max(LEAST_CURVE[1], searched[-1]), CURVE_POINTS)


def ece_curve(split: Split, temperatures: NDArray, bins: int) -> NDArray[np.float64]:
    """Return the ECE of softmax(logits / T) for each T (t,), as float64 (t,)."""
    logits = np.asarray(split.logits, np.float64)
    below_top = logits - logits.max(axis=1, keepdims=True)
    correct = logits.argmax(axis=1) == split.labels
    curve = []
    for temperature in temperatures:
        confidence = 1 / np.exp(below_top / temperature).sum(axis=1)
        curve.append(ece_of_bins(width_index(confidence, bins), confidence - correct, bins))
    return np.array(curve)


def _comparisons(scores: Mapping[FitKey, Resampled]) -> list[dict[str, Any]]:
    """Return each method against each of `AGAINST` that was fitted by the same criterion, by each metric.

    What is not fitted, such as the model as trained, is compared with the fits of every criterion. A row has
    both scores, their difference, its 95 % interval and standard error over test samples, and z.
    """
    rows = []
    for (against, criterion), (method, own) in product(scores, scores):
        if against not in AGAINST or method == against or own not in (criterion, None):
            continue
        for column, metric in enumerate(COMPARED_METRICS):
            first, second = scores[method, own][column], scores[against, criterion][column]
            found = compare_resampled(first, second)
            numbers = {
                "value": first.value,
                "against_value": second.value,
                "difference": found.difference,
                **vars(found.interval),
                "error": found.error,
                "z": found.z,
            }
            rows.append(
                {"method": method, "against": against, "criterion": criterion, "metric": metric}
                | dict(zip(numbers, _rounded(numbers.values()), strict=True))
            )
    return rows


def _rounded_bins(predictions: Predictions, bins: int) -> dict[str, list]:
    """Return the reliability bins with means that have `DIGITS` digits."""
    found = reliability_bins(predictions.confidence, predictions.correct, bins)
    return found | {name: _rounded(found[name]) for name in ("confidence", "accuracy")}


def _rounded(values: Iterable[float | None]) -> list[float | None]:
    return [None if value is None else float(f"{value:.{DIGITS}g}") for value in values]
