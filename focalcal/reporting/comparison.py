"""Two models on the same samples, as they are and after temperature scaling."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.calibrators import new_calibrator
from focalcal.calibration.files.logits_io import RunLogits, Split
from focalcal.calibration.fitting.folds import stratified_folds
from focalcal.calibration.metrics import metric_value
from focalcal.calibration.recommend import FOLDS, LEAVE, SCORES
from focalcal.calibration.scores.predictions import Predictions
from focalcal.calibration.scores.resampling import mean_change
from focalcal.common.errors import UserError
from focalcal.common.text_table import aligned_lines
from focalcal.reporting.text import format_number

STATES = {LEAVE: "as they are", "ts": "after temperature scaling"}
"""How the models are compared, by the calibrator."""
BINS, ADAECE = 15, "split"


def compare(first: RunLogits | Split, second: RunLogits | Split, names: tuple[str, str]) -> dict[str, Any]:
    """Return scores of two models on the samples that both have, and differences of log-losses, JSON-ready.

    The samples are those of the test split, for which temperatures are fitted to validation samples; without
    one they are all, and each sample is predicted by the fit to the folds that it is not in.
    """
    both = (first, second)
    labels = [(one if isinstance(one, Split) else one.test).labels for one in both]
    if not np.array_equal(labels[0], labels[1]):
        raise UserError(
            f"{names[0]} and {names[1]} have different labels ({len(labels[0])} and {len(labels[1])} "
            f"samples); allowed: the same samples in the same order; write them again"
        )
    result: dict[str, Any] = {"models": list(names), "samples": len(labels[0]), "states": {}}
    for method, state in STATES.items():
        logs = [_predicted(one, method) for one in both]
        predictions = [Predictions.from_logs(each, labels[0]) for each in logs]
        losses = [-each[np.arange(len(labels[0])), labels[0]] for each in logs]
        change, interval = mean_change(losses[1], losses[0])
        result["states"][state] = {
            "scores": [
                {score: metric_value(score, each, BINS, ADAECE) for score in SCORES} for each in predictions
            ],
            "nll_difference": change,
            "low": interval.low,
            "high": interval.high,
        }
    return result


def _predicted(logits: RunLogits | Split, method: str) -> NDArray[np.float64]:
    """Return log-probabilities (n, k) of samples that the calibrator was not fitted to."""
    if isinstance(logits, RunLogits):
        fitted = new_calibrator(method).fit(logits.val.logits, logits.val.labels)
        return fitted.predict_log_proba(logits.test.logits)
    logs = np.empty(logits.logits.shape)
    folds = stratified_folds(logits.labels, min(FOLDS, len(logits.labels)))
    for held in (folds == fold for fold in range(int(folds.max()) + 1)):
        fitted = new_calibrator(method).fit(logits.logits[~held], logits.labels[~held])
        logs[held] = fitted.predict_log_proba(logits.logits[held])
    return logs


def comparison_text(found: Mapping[str, Any]) -> str:
    """Return a comparison as a table and one sentence per state."""
    head = ("", "model", "log-loss", "Brier", "accuracy (%)", "ECE (%)")
    rows = [
        (
            state if place == 0 else "",
            name,
            *(format_number(scores[key], 5) for key in ("nll", "brier")),
            *(format_number(100 * scores[key], 2) for key in ("accuracy", "ece")),
        )
        for state, told in found["states"].items()
        for place, (name, scores) in enumerate(zip(found["models"], told["scores"], strict=True))
    ]
    return "\n".join([*aligned_lines([head, *rows], left=2), "", *_verdicts(found)])


def _verdicts(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield which model is better in each state, and by how much."""
    for state, told in found["states"].items():
        change, low, high = (
            format_number(told[key], 5, signed=True) for key in ("nll_difference", "low", "high")
        )
        if told["low"] <= 0 <= told["high"]:
            better = "no difference is shown"
        else:
            better = f"{found['models'][1 if told['high'] < 0 else 0]} is better"
        yield (
            f"{state[0].upper()}{state[1:]}, {better}: log-loss of the second minus the first {change} "
            f"(95 % interval {low} to {high}, {found['samples']:,} samples)."
        )
