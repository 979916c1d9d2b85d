"""Calibration of the confidence alone: top-versus-all temperature scaling, and an adversary of ECE."""

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.calibrators import FocalMap
from focalcal.calibration.catalogue import calibrator
from focalcal.calibration.fitting.continuous import best_temperature_of, temperature_range, with_minimum
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import Fit
from focalcal.calibration.methods.affine import LogLossCalibrator
from focalcal.calibration.parameters import Numbers
from focalcal.theory.top_class import row_blocks


@calibrator(
    id="tva",
    label="TvA-TS",
    full_label="top-versus-all temperature scaling (TvA-TS)",
    color="grey",
    marker="h",
    criteria=("nll",),
    shown=False,
    fixed=("gamma",),
)
class TopVersusAll(LogLossCalibrator, FocalMap):
    """Method `tva`: softmax(logits / T), T fitted to the confidence alone (Le Coz et al. 2024).

    T minimises the log-loss of a binary problem, whether the top class is the label, for the probability
    max softmax(logits / T). However many classes there are, every sample then informs the confidence.
    Without errors there is no fit.
    `score_` is the log-loss over all classes, as for other methods.

    Attributes
    ----------
    temperature_ : float
        The best temperature.
    """

    def _search(self, objective: Objective) -> Fit:
        found = with_minimum(
            best_temperature_of(
                lambda temperature: top_versus_all_loss(objective.logits, objective.labels, temperature),
                temperature_range(objective.logits),
            )
        )
        return replace(found, score=None)


@calibrator(
    id="constant",
    label="Adversary",
    full_label="constant confidence (an adversary of ECE)",
    color="black",
    marker="v",
    criteria=("nll",),
    recommendable=False,
)
class ConstantConfidence(LogLossCalibrator):
    """Method `constant`: every sample gets the same confidence, the accuracy on validation data.

    The top class keeps its rank and the others share the rest evenly. Its ECE is the gap between validation
    and test accuracy, as good as perfect, although it says nothing about any sample: a ranking by ECE puts it
    first, a proper score last. It is here to show that, not to be used.

    Attributes
    ----------
    parameters : dict
        `confidence`: (correct + 1) / (n + 2), which is never 0 or 1, or just above 1 / k if that is larger.
    """

    declared: ClassVar = {"confidence": Numbers(low=1e-12, high=1.0 - 1e-12)}

    def log_map(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the same two values in every row, (n, k)."""
        samples, classes = logits.shape
        confidence = self.parameters["confidence"]
        logs = np.full((samples, classes), math.log((1.0 - confidence) / (classes - 1)))
        logs[np.arange(samples), logits.argmax(axis=1)] = math.log(confidence)
        return logs

    def _search(self, objective: Objective) -> Fit:
        correct = int(np.sum(objective.logits.argmax(axis=1) == objective.labels))
        samples, classes = objective.logits.shape
        lowest = 1.0 / (classes - 1e-6)
        return Fit({"confidence": max((correct + 1) / (samples + 2), lowest)}, evaluations=1)


def top_versus_all_loss(logits: NDArray[np.float64], labels: NDArray[np.int64], temperature: float) -> float:
    """Return the mean log-loss of `the top class is the label` for the confidence at a temperature."""
    total = 0.0
    for block in row_blocks(*logits.shape):
        rows = np.arange(len(logits[block]))
        top = logits[block].argmax(axis=1)
        rest = logits[block] / temperature
        of_top = rest[rows, top]
        rest[rows, top] = -np.inf
        # 1 - confidence is summed, not subtracted: it stays positive where the confidence rounds to 1.
        highest = rest.max(axis=1)
        rest -= highest[:, None]
        with np.errstate(under="ignore"):
            np.exp(rest, out=rest)
            log_odds = highest - of_top + np.log(np.einsum("ij->i", rest))
            log_total = np.logaddexp(0.0, log_odds)
        total += float(np.sum(np.where(top == labels[block], log_total, log_total - log_odds)))
    return total / len(labels)
