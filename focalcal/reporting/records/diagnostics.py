"""One run reduced to what figures and sample statistics need: reliability bins, ECE against T, intervals."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.calibrators import load_calibrator
from focalcal.calibration.logits_io import RunLogits, Split
from focalcal.calibration.metrics import Predictions, reliability_bins, width_index
from focalcal.calibration.run import context_of
from focalcal.reporting.statistics.tests import compare_samples

CURVE_POINTS = 97
LEAST_CURVE = (0.25, 4.0)
"""Temperatures that every curve spans, so that a narrow search is shown with its surroundings."""
COMPARED = ("fts", "ts")
DIGITS = 7


def summarise_run(
    logits: RunLogits, fits: Mapping[str, Any], criterion: str, resamples: int
) -> dict[str, Any]:
    """Return a run's diagnostics on test data, JSON-ready; `fits` is its fits.json.

    `reliability`: for each method (the fit chosen by `criterion`, else its first) its parameters and, for
    each equal-width bin, count, mean confidence and accuracy (None if empty). `curve`: ECE of the logits
    divided by each of `temperatures`, which span all that were searched. `comparisons`: test ECE and log-loss
    of FTS and TS chosen by `criterion`, their difference and its 95 % interval over test samples.
    """
    test, context = logits.test, context_of(fits["spec"])
    chosen = choose_fits(fits["fits"], criterion)
    predictions = {
        method: Predictions.from_logs(load_calibrator(fit).predict_log_proba(test.logits), test.labels)
        for method, fit in chosen.items()
    }
    temperatures = curve_grid(context.temperatures)
    return {
        "run": dict(fits["run"]),
        "bins": context.bins,
        "criterion": criterion,
        "samples": len(test.labels),
        "reliability": [
            {
                **{key: fit[key] for key in ("method", "criterion", "parameters")},
                **_rounded_bins(predictions[method], context.bins),
            }
            for method, fit in chosen.items()
        ],
        "curve": {
            "temperatures": _rounded(temperatures),
            "ece": _rounded(ece_curve(test, temperatures, context.bins)),
        },
        "comparisons": _comparisons(predictions, chosen, criterion, context.bins, resamples),
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


def _comparisons(
    predictions: Mapping[str, Predictions],
    chosen: Mapping[str, Mapping[str, Any]],
    criterion: str,
    bins: int,
    resamples: int,
) -> list[dict[str, Any]]:
    """Return FTS against TS on the run's test samples; nothing unless both were fitted by `criterion`."""
    if any(chosen.get(method, {}).get("criterion") != criterion for method in COMPARED):
        return []
    pair = [predictions[method] for method in COMPARED]
    # A resample draws samples, and their bins stay.
    binned = [(width_index(one.confidence, bins), one.confidence - one.correct) for one in pair]
    logs = [(one.label_logs,) for one in pair]
    by_ece = compare_samples(lambda index, gap: ece_of_bins(index, gap, bins), *binned, resamples=resamples)
    by_nll = compare_samples(lambda log: -float(log.mean()), *logs, resamples=resamples)
    return [
        {
            "metric": metric,
            **{name: getattr(found, name) for name in ("first", "second", "difference")},
            "low": found.interval.low,
            "high": found.interval.high,
        }
        for metric, found in (("ece", by_ece), ("nll", by_nll))
    ]


def _rounded_bins(predictions: Predictions, bins: int) -> dict[str, list]:
    """Return the reliability bins with means that have `DIGITS` digits."""
    found = reliability_bins(predictions.confidence, predictions.correct, bins)
    return found | {name: _rounded(found[name]) for name in ("confidence", "accuracy")}


def _rounded(values: Iterable[float | None]) -> list[float | None]:
    return [None if value is None else float(f"{value:.{DIGITS}g}") for value in values]
