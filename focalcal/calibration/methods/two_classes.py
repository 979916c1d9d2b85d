"""Calibrators of two classes: logistic regression on functions of the probabilities.

In place of 1 and 0 the targets are (n1 + 1) / (n1 + 2) and 1 / (n0 + 2), with n1 and n0 samples of each class
(Platt 1999, Sec. 2.2), so that there is a minimum for any samples.
"""

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.catalogue import calibrator
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import Fit, boundaries_hit
from focalcal.calibration.methods.affine import AffineCalibrator, PerClass, log_probabilities

LARGEST_SLOPE = 1e-10
"""The search stops when no slope in units of the features' deviations is larger."""


@calibrator(
    id="platt",
    label="Platt",
    full_label="Platt scaling",
    color="sky",
    marker="v",
    criteria=("nll",),
    changes_predictions=True,
    most_classes=2,
    fitted=2,
)
class PlattScaling(AffineCalibrator):
    """Platt scaling, method `platt`, for two classes: sigmoid(a m + c) of the margin m = log p1 - log p0.

    Attributes
    ----------
    parameters : dict
        `coefficients` (2, 2): slope a of either class, and intercepts 0 and c.
    """

    features = PerClass

    def _search(self, objective: Objective) -> Fit:
        logs = _log_probabilities(objective)
        (slope, intercept), cost = smoothed_logistic(logs[:, 1:] - logs[:, :1], objective.labels)
        return Fit({"coefficients": np.array([[slope, 0.0], [slope, intercept]])}, evaluations=cost)


@calibrator(
    id="beta",
    label="Beta",
    full_label="beta calibration",
    color="green",
    marker="v",
    criteria=("nll",),
    changes_predictions=True,
    most_classes=2,
    fitted=3,
)
class BetaCalibration(AffineCalibrator):
    """Beta calibration, method `beta`, for two classes: sigmoid(a log p1 - b log p0 + c), a, b >= 0.

    Kull, Silva Filho and Flach (2017), with Platt's targets. Without these and the bounds it is vector
    scaling.

    Attributes
    ----------
    parameters : dict
        `coefficients` (2, 2): slopes b and a, and intercepts 0 and c.
    """

    features = PerClass

    def _search(self, objective: Objective) -> Fit:
        logs = _log_probabilities(objective)
        (b, a, intercept), cost = smoothed_logistic(logs * [-1.0, 1.0], objective.labels, lowest=0.0)
        return Fit(
            {"coefficients": np.array([[b, 0.0], [a, intercept]])},
            evaluations=cost,
            boundaries=boundaries_hit(coefficients=(min(a, b), (0.0, np.inf))),
        )


def _log_probabilities(objective: Objective) -> NDArray[np.float64]:
    """Return the log-probabilities (n, 2) of two classes; raise ValueError for more."""
    if objective.logits.shape[1] != 2:
        raise ValueError(f"logits has {objective.logits.shape[1]} classes; this calibrator applies to 2")
    return log_probabilities(objective.logits)


def smoothed_logistic(
    features: NDArray[np.float64], labels: NDArray[np.int64], lowest: float = -np.inf
) -> tuple[NDArray[np.float64], int]:
    """Return slopes, not below `lowest`, and intercept (f + 1,) of logistic regression, and its cost.

    The targets are Platt's.
    """
    from scipy import optimize  # noqa: PLC0415 - only fits need it, predictions never do

    ones = int(labels.sum())
    targets = np.where(labels == 1, (ones + 1.0) / (ones + 2.0), 1.0 / (len(labels) - ones + 2.0))
    scales = np.maximum(np.append(np.sqrt(np.mean(features**2, axis=0)), 1.0), 1e-300)
    columns = np.column_stack([features, np.ones(len(features))]) / scales

    def loss(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        scores = columns @ point
        value = np.mean(np.logaddexp(0.0, scores) - targets * scores)
        with np.errstate(over="ignore", under="ignore"):
            residuals = 1.0 / (1.0 + np.exp(-scores)) - targets
        return float(value), columns.T @ residuals / len(residuals)

    bounds = [(lowest, np.inf)] * features.shape[1] + [(-np.inf, np.inf)]
    options = {"ftol": 0.0, "gtol": LARGEST_SLOPE, "maxiter": 1000}
    start = np.append(np.ones(features.shape[1]), 0.0) * scales
    found = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return found.x / scales, int(found.nfev)
