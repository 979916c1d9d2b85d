"""What figures and sample statistics need of one run, small: reliability bins, ECE against T, intervals."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration import calibrators, metrics
from focalcal.calibration import run as engine
from focalcal.calibration.calibrators import Settings
from focalcal.calibration.catalogue import METHODS
from focalcal.calibration.logits_io import RunLogits, Split
from focalcal.calibration.search import Fit
from focalcal.reporting.statistics.tests import compare_samples

CURVE_POINTS = 97
LEAST_CURVE = (0.25, 4.0)
"""Temperatures that every curve spans: a narrow search should still be seen against its surroundings."""
COMPARED = ("fts", "ts")
DIGITS = 7


def diagnose(
    logits: RunLogits, fits: Mapping[str, Any], calibration: Mapping[str, Any], criterion: str, resamples: int
) -> dict[str, Any]:
    """Return a run's diagnostics on test data, JSON-ready; `calibration` is the spec the fits were made by.

    `reliability`: for each method (the fit chosen by `criterion`, else the only one it has) its gamma,
    temperature and, for each equal-width bin, count, mean confidence and accuracy (None where empty).
    `curve`: ECE of the logits divided by each of `temperatures`, which span all that were searched, hence
    all that can have been chosen. `comparisons`: test ECE and log-loss
    of FTS and TS chosen by `criterion`, their difference and its 95 % interval over test samples.
    """
    test, settings = logits.test, engine.settings_of(calibration)
    bins, gamma = settings.bins, fits["run"]["gamma"]
    chosen = choose_fits(fits["fits"], criterion)
    curve_temperatures = curve_grid(settings.temperatures)
    predictions = {method: _predict(test, fit, settings, gamma) for method, fit in chosen.items()}
    return {
        "run": dict(fits["run"]),
        "bins": bins,
        "criterion": criterion,
        "samples": len(test.labels),
        "reliability": [
            {
                "method": method,
                **{key: fit[key] for key in ("criterion", "gamma", "temperature")},
                **reliability_bins(*predictions[method][:2], bins),
            }
            for method, fit in chosen.items()
        ],
        "curve": {
            "temperatures": _rounded(curve_temperatures),
            "ece": _rounded(ece_curve(test, curve_temperatures, bins)),
        },
        "comparisons": _comparisons(predictions, chosen, criterion, bins, resamples),
    }


def choose_fits(fits: Sequence[Mapping[str, Any]], criterion: str) -> dict[str, Mapping[str, Any]]:
    """Return one fit a method: that chosen by `criterion`, else its first."""
    chosen: dict[str, Mapping[str, Any]] = {}
    for fit in fits:
        if fit["method"] not in chosen or fit["criterion"] == criterion:
            chosen[fit["method"]] = fit
    return chosen


def reliability_bins(confidence: NDArray, correct: NDArray, bins: int) -> dict[str, list]:
    """Return count, mean confidence and accuracy of each bin (lo, hi] of equal width, None where empty."""
    count, confidences, accuracies = metrics.reliability(confidence, correct, bins)
    return {
        "count": count.tolist(),
        "confidence": _rounded(confidences),
        "accuracy": _rounded(accuracies),
    }


def top_label_ece(confidence: NDArray, correct: NDArray, bins: int) -> float:
    """Return the ECE over equal-width bins (lo, hi] from confidences (n,) and whether each is right (n,)."""
    return ece_of_bins(metrics.width_index(confidence, bins), confidence - correct, bins)


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
    return np.array(
        [
            top_label_ece(1 / np.exp(below_top / temperature).sum(axis=1), correct, bins)
            for temperature in temperatures
        ]
    )


def _predict(
    split: Split, fit: Mapping[str, Any], settings: Settings, training_gamma: float | None
) -> tuple[NDArray, NDArray, NDArray]:
    """Return confidence (n,), correctness (n,) and the label's log-probability (n,) under a stored fit."""
    calibrator_class = getattr(calibrators, METHODS[fit["method"]].class_name)
    calibrator = calibrator_class.configured(fit["criterion"], settings, training_gamma)
    calibrator.fit_ = Fit(fit["gamma"], fit["temperature"], fit["validation_score"], fit["evaluations"])
    log_probs = calibrator.predict_log_proba(split.logits)
    correct = log_probs.argmax(axis=1) == split.labels
    log_label = log_probs[np.arange(len(split.labels)), split.labels]
    return np.exp(log_probs.max(axis=1)), correct, log_label


def _comparisons(
    predictions: Mapping[str, tuple[NDArray, NDArray, NDArray]],
    chosen: Mapping[str, Mapping[str, Any]],
    criterion: str,
    bins: int,
    resamples: int,
) -> list[dict[str, Any]]:
    """Return FTS against TS on the run's test samples; nothing where either was not fitted by `criterion`."""
    if any(chosen.get(method, {}).get("criterion") != criterion for method in COMPARED):
        return []
    first, second = (predictions[method] for method in COMPARED)
    pairs = {
        "ece": (
            lambda index, gap: ece_of_bins(index, gap, bins),
            _binned(first, bins),
            _binned(second, bins),
        ),
        "nll": (lambda log_label: -float(log_label.mean()), first[2:], second[2:]),
    }
    found = []
    for metric, (function, ours, theirs) in pairs.items():
        comparison = compare_samples(function, ours, theirs, kind="basic", resamples=resamples)
        found.append(
            {
                "metric": metric,
                "first": comparison.first,
                "second": comparison.second,
                "difference": comparison.difference,
                "low": comparison.interval.low,
                "high": comparison.interval.high,
            }
        )
    return found


def _binned(prediction: Sequence[NDArray], bins: int) -> tuple[NDArray, NDArray]:
    """Return the arrays `ece_of_bins` takes: a resample draws samples, whose bins stay."""
    confidence, correct = prediction[:2]
    return metrics.width_index(confidence, bins), confidence - correct


def _rounded(values: NDArray) -> list[float | None]:
    return [None if np.isnan(value) else float(f"{value:.{DIGITS}g}") for value in values]
