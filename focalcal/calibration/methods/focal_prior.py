"""Focal temperature scaling with priors of gamma and temperature: safe with any number of samples."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.calibrators import FocalMap
from focalcal.calibration.catalogue import calibrator
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import Fit
from focalcal.calibration.methods.affine import LogLossCalibrator, one_thread
from focalcal.calibration.methods.prior import PSEUDO_SAMPLES
from focalcal.theory.top_class import row_blocks

GAMMA_DEVIATION = 0.5
"""Standard deviation of the normal prior of log(1 + gamma), mean 0."""
LOWEST_LOG_GAMMA, HIGHEST_LOG_GAMMA = math.log(0.05), math.log(101.0)
"""gamma stays between -0.95 and 100."""
LOG_GAMMA_STARTS = (0.0, -0.7, 1.0)
COARSE_LOGS, COARSE_STEPS = (-7.0, 7.0), 15
"""Range and number of the values of log T - log(lead) at which a search first looks."""


@dataclass(frozen=True)
class FocalFit:
    """What `focal_fit` found."""

    log_gamma: float
    """log(1 + gamma)."""
    temperature: float
    plain_temperature: float
    """The most probable temperature at gamma 0."""
    evaluations: int


@calibrator(
    id="fts-prior",
    label="FTS-P",
    full_label="focal temperature scaling with a prior (FTS-P)",
    color="vermilion",
    marker="P",
    criteria=("nll",),
    shown=False,
)
class PriorFocalTemperatureScaling(LogLossCalibrator, FocalMap):
    """Method `fts-prior`: Psi^gamma(softmax(logits / T)) (K24 Sec. 4.2) with priors of gamma and T.

    The prior of log(1 + gamma), by which the temperature of the top class differs from that of the others,
    is normal with mean 0 and standard deviation 0.5. That of 1 / T is exponential, which is the pseudo-sample
    of `ts-prior` in its linear form: minus its logarithm is `mean_i(max_k z_ik - mean_k z_ik) / (2 T)`. Both
    weigh as much as one sample or so, whatever the number of samples and the scale of the logits z.

    Attributes
    ----------
    gamma_, temperature_ : float
        The most probable pair.
    """

    def _search(self, objective: Objective) -> Fit:
        with one_thread():
            found = focal_fit(objective.logits, objective.labels)
        return Fit(
            {"gamma": math.expm1(found.log_gamma), "temperature": found.temperature},
            evaluations=found.evaluations,
        )


def focal_fit(logits: NDArray[np.float64], labels: NDArray[np.int64], *, focal: bool = True) -> FocalFit:
    """Return the most probable gamma and temperature under the priors of `fts-prior`; not focal: gamma 0.

    A coarse grid and then a search find the temperature at gamma 0; from there the search for both starts at
    three gammas, since the posterior can have several maxima.
    """
    from scipy import optimize  # noqa: PLC0415 - only fits need it, predictions never do

    loss = _PenalisedFocalLoss(logits, labels)
    centre = math.log(loss.lead) if loss.lead > 0 else 0.0
    logs = centre + np.linspace(*COARSE_LOGS, COARSE_STEPS)

    def minimum(start: Sequence[float], log_gammas: tuple[float, float]) -> Any:
        bounds = [log_gammas, (logs[0] - 2.0, logs[-1] + 2.0)]
        options = {"ftol": 1e-11, "gtol": 1e-8}
        return optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)

    plain = minimum([0.0, min(logs, key=lambda log: loss([0.0, log])[0])], (0.0, 0.0))
    best = plain
    if focal:
        starts = [[start, plain.x[1] + 0.5 * start] for start in LOG_GAMMA_STARTS]
        found = [minimum(start, (LOWEST_LOG_GAMMA, HIGHEST_LOG_GAMMA)) for start in starts]
        best = min(found, key=lambda one: one.fun)
    return FocalFit(float(best.x[0]), math.exp(best.x[1]), math.exp(plain.x[1]), loss.evaluations)


class _PenalisedFocalLoss:
    """Minus the logarithm of the posterior per sample, as a function of log(1 + gamma) and log T."""

    def __init__(self, logits: NDArray[np.float64], labels: NDArray[np.int64]) -> None:
        from focalcal.calibration.kernels import compiled  # noqa: PLC0415 - numba is loaded by fits only

        self._loss = compiled.focal_map_kernel()
        self._gaps = logits - logits.max(axis=1, keepdims=True)
        self._labels = labels
        self.lead = -float(self._gaps.mean())
        self.evaluations = 0

    def __call__(self, point: Sequence[float]) -> tuple[float, NDArray[np.float64]]:
        """Return the value and its gradient (2,)."""
        log_gamma, log_temperature = (float(value) for value in point)
        gamma, coldness = math.expm1(log_gamma), math.exp(-log_temperature)
        total, by_gamma, by_coldness = 0.0, 0.0, 0.0
        for rows in row_blocks(*self._gaps.shape):
            scores = self._gaps[rows] * coldness
            value, slope = self._loss(scores, self._labels[rows], gamma)
            total += value
            by_gamma += slope
            by_coldness += float(np.vdot(scores, self._gaps[rows]))
        self.evaluations += 1
        total += PSEUDO_SAMPLES * self.lead * coldness + log_gamma**2 / (2.0 * GAMMA_DEVIATION**2)
        by_coldness += PSEUDO_SAMPLES * self.lead
        by_log_gamma = by_gamma * (1.0 + gamma) + log_gamma / GAMMA_DEVIATION**2
        return total / len(self._labels), np.array([by_log_gamma, -by_coldness * coldness]) / len(
            self._labels
        )
