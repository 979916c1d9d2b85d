"""Ensemble temperature scaling."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.catalogue import calibrator
from focalcal.calibration.fitting.continuous import best_temperature, with_minimum
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import Fit
from focalcal.calibration.methods.affine import LogLossCalibrator, one_thread
from focalcal.calibration.parameters import TEMPERATURE, Numbers
from focalcal.theory.psi import log_psi
from focalcal.theory.top_class import MOST_NEGATIVE

SMALLEST_PROBABILITY = np.finfo(np.float64).tiny


@calibrator(
    id="ets",
    label="ETS",
    full_label="ensemble temperature scaling (ETS)",
    color="blue",
    marker=">",
    criteria=("nll",),
)
class EnsembleTemperatureScaling(LogLossCalibrator):
    """Method `ets`: w1 softmax(logits / T) + w2 softmax(logits) + w3 / k (Zhang et al. 2020).

    First T is fitted, then the weights, which are not negative and sum to 1; both by log-loss. Where T
    goes to 0, as without errors, there is no fit.

    Attributes
    ----------
    parameters : dict
        `temperature` T and `weights` (3,).
    """

    declared: ClassVar = {"temperature": TEMPERATURE, "weights": Numbers((3,), 0.0, 1.0, total=1.0)}

    def log_map(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the logarithm of the mixture, (n, k), finite for finite logits."""
        with np.errstate(divide="ignore", over="ignore"):
            scaled, trained, uniform = np.log(self.parameters["weights"])
            mixed = np.logaddexp(log_psi(logits, 0.0) + trained, uniform - np.log(logits.shape[1]))
            mixed = np.logaddexp(log_psi(logits, 0.0, self.parameters["temperature"]) + scaled, mixed)
        return np.maximum(mixed, MOST_NEGATIVE)

    def _search(self, objective: Objective) -> Fit:
        scaling = with_minimum(best_temperature(objective))
        rows = np.arange(len(objective.labels))
        members = [
            log_psi(objective.logits, 0.0, temperature)[rows, objective.labels]
            for temperature in (scaling.parameters["temperature"], 1.0)
        ]
        uniform = np.full(len(rows), 1.0 / objective.logits.shape[1])
        weights, evaluations = best_weights(np.column_stack([*np.exp(members), uniform]))
        return Fit(
            {"temperature": scaling.parameters["temperature"], "weights": weights},
            evaluations=scaling.evaluations + evaluations,
            boundaries=scaling.boundaries,
        )


def best_weights(members: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """Return the mixture weights (m,) with the smallest log-loss, and the number of evaluations.

    `members` (n, m) holds the probability that each member gives the label of each sample. The problem is
    convex.
    """
    from scipy import optimize  # noqa: PLC0415 - only fits need it, predictions never do

    count = members.shape[1]

    def value_and_gradient(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        mixed = np.maximum(members @ weights, SMALLEST_PROBABILITY)
        return float(-np.mean(np.log(mixed))), -np.mean(members / mixed[:, None], axis=0)

    with one_thread():
        found = optimize.minimize(
            value_and_gradient,
            np.full(count, 1.0 / count),
            jac=True,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * count,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": np.ones_like},
            options={"ftol": 1e-12, "maxiter": 1000},
        )
    if not found.success:
        raise FloatingPointError(f"the weights of the ensemble were not found: {found.message}")
    weights = np.clip(found.x, 0.0, 1.0)
    return weights / weights.sum(), int(found.nfev)
