"""Isotonic regression of each class's probability, one class against the rest."""

import bisect
import itertools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from focalcal.calibration.catalogue import calibrator
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import Fit
from focalcal.calibration.methods.affine import LOWEST_LOG, LogLossCalibrator, log_probabilities
from focalcal.calibration.parameters import SHARE, Numbers, check_starts
from focalcal.theory.psi import log_psi

RESOLUTION = float(np.finfo(np.float32).resolution)
"""Probabilities closer than this, 1e-6, are tied, as in scikit-learn."""


@calibrator(
    id="isotonic",
    label="Isotonic",
    full_label="isotonic regression, one class against the rest",
    color="black",
    marker="d",
    criteria=("nll",),
    changes_predictions=True,
    fixed=("starts", "uniform"),
)
@dataclass(eq=False)
class IsotonicCalibration(LogLossCalibrator):
    """Method `isotonic`: isotonic regression of each class's probability (Zadrozny & Elkan 2002), normalised.

    Each class is fitted against the rest as by scikit-learn's `IsotonicRegression`, which minimises the
    binary log-loss and the squared error at once. Between its steps the map is linear. Probabilities are
    rounded to float32, the precision of most stored logits. The fit gives many probabilities of exactly 0,
    whose log-loss is infinite, so the normalised map is mixed with the uniform distribution at weight
    1 / (n + 1).

    Parameters
    ----------
    smoothed : bool
        False leaves out the mixture and replaces 0 by exp(-87.3), the smallest normal float32. CalArena
        scores isotonic regression in this way; its log-loss then mostly counts the labels that got 0.

    Attributes
    ----------
    parameters : dict
        `thresholds` and `values`, where the map of each class bends, all classes one after the other;
        `starts` (k + 1,), where each class begins; `uniform`, the weight of the uniform distribution.
    """

    smoothed: bool = True

    declared: ClassVar = {
        "thresholds": Numbers(("m",), 0.0, 1.0),
        "values": Numbers(("m",), 0.0, 1.0),
        "starts": Numbers(("k+1",), 0.0),
        "uniform": SHARE,
    }

    @classmethod
    def check_parameters(cls, parameters: Any, classes: Any = None) -> int | None:
        """Return the number of classes of parameters; raise ValueError if they are not allowed."""
        classes = super().check_parameters(parameters, classes)
        check_starts(*(parameters[name] for name in ("starts", "thresholds", "values")))
        return classes

    def log_map(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the logarithms of the normalised maps, (n, k)."""
        thresholds, values, starts = (
            np.asarray(self.parameters[name]) for name in ("thresholds", "values", "starts")
        )
        probs = _rounded_softmax(logits).astype(np.float64)
        for number, (first, end) in enumerate(itertools.pairwise(starts)):
            probs[:, number] = np.interp(probs[:, number], thresholds[first:end], values[first:end])
        return log_probabilities(_logs(probs), uniform=self.parameters["uniform"])

    def _search(self, objective: Objective) -> Fit:
        probs = _rounded_softmax(objective.logits)
        bends = [isotonic_bends(column, objective.labels == number) for number, column in enumerate(probs.T)]
        thresholds, values = (np.concatenate(arrays) for arrays in zip(*bends, strict=True))
        starts = np.cumsum([0, *(len(of_class) for of_class, _ in bends)])
        parameters = {"thresholds": thresholds, "values": values, "starts": starts}
        uniform = 1.0 / (len(objective.labels) + 1) if self.smoothed else 0.0
        return Fit({**parameters, "uniform": uniform}, evaluations=1)


def isotonic_bends(
    chances: NDArray[np.float32], hits: NDArray[np.bool_]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return where the isotonic regression of hits on chances (n,) bends, ascending, and its values there.

    The result is that of scikit-learn, whose import takes longer than most fits.
    """
    from scipy import optimize  # noqa: PLC0415 - only fits need it, predictions never do

    order = np.argsort(chances)
    ascending = chances[order]
    starts = _tie_starts(ascending.tolist())
    counts = np.diff(starts, append=len(order))
    means = (np.add.reduceat(hits[order], starts, dtype=np.float64) / counts).astype(np.float32)
    fitted = optimize.isotonic_regression(means, weights=counts).x.astype(np.float32)
    steps = fitted[1:] != fitted[:-1]
    bends = np.append(True, steps) | np.append(steps, True)
    return ascending[starts][bends], fitted[bends]


def _tie_starts(ascending: list[float]) -> list[int]:
    """Return where groups begin that reach less than `RESOLUTION` above their first value."""
    starts, start = [], 0
    while start < len(ascending):
        starts.append(start)
        start = bisect.bisect_left(ascending, ascending[start] + RESOLUTION, start + 1)
    return starts


def _logs(probs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithms, in place of `probs`, at least that of the smallest normal float32."""
    with np.errstate(divide="ignore"):
        np.log(probs, out=probs)
    return np.maximum(probs, LOWEST_LOG, out=probs)


def _rounded_softmax(logits: ArrayLike) -> NDArray[np.float32]:
    """Return softmax(logits), rounded to float32, (n, k)."""
    with np.errstate(under="ignore"):
        return np.exp(log_psi(logits, 0.0)).astype(np.float32)
