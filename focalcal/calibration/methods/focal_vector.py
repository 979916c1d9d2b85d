"""The focal map of vector scaling: gamma, slopes and intercepts fitted together by log-loss."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.catalogue import calibrator
from focalcal.calibration.fitting.continuous import GAMMA_RANGE, best_focal_map
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import Fit, boundaries_hit
from focalcal.calibration.methods.affine import (
    AffineCalibrator,
    Array,
    PerClass,
    fit_coefficients,
    log_probabilities,
)
from focalcal.calibration.methods.scaling import neutral, structured_penalty
from focalcal.calibration.parameters import FOCAL_MAP, GAMMA, SHARE


class _FocalVector(AffineCalibrator):
    """Psi^gamma(softmax(w * log p + b)); the search starts at focal temperature scaling."""

    def _minimum(
        self,
        objective: Objective,
        focal: Fit,
        features: PerClass,
        start: Array,
        penalty: Array,
        **others: float,
    ) -> Fit:
        """Return the fit of gamma and coefficients from `start`; `others` are parameters that stay fixed."""
        found = fit_coefficients(
            features,
            objective.labels,
            start,
            penalty,
            centre=start,
            loss=focal_map_loss,
            shape=[focal.parameters["gamma"]],
            shape_bounds=GAMMA_RANGE,
        )
        gamma = float(found.shape[0])
        return Fit(
            {"gamma": gamma, **others, "coefficients": found.coefficients},
            evaluations=focal.evaluations + found.evaluations,
            boundaries=boundaries_hit(gamma=(gamma, GAMMA_RANGE)),
        )


@calibrator(
    id="fts-vs",
    label="FTS-VS",
    full_label="focal vector scaling (FTS-VS)",
    color="vermilion",
    marker="8",
    criteria=("nll",),
    changes_predictions=True,
)
class FocalVectorScaling(_FocalVector):
    """Method `fts-vs`: Psi^gamma(softmax(w * log p + b)) with p = softmax(logits).

    Vector scaling in place of the temperature of focal temperature scaling (K24 Sec. 4.2). Gamma, slopes
    and intercepts minimise the log-loss together.

    Attributes
    ----------
    parameters : dict
        `gamma` and `coefficients` (k, 2): slope w and intercept b of each class.
    """

    features = PerClass
    beside: ClassVar = {"gamma": GAMMA}

    def _search(self, objective: Objective) -> Fit:
        focal = best_focal_map(objective)
        features = PerClass(log_probabilities(objective.logits))
        start = neutral(features) / focal.parameters["temperature"]
        return self._minimum(objective, focal, features, start, np.zeros_like(start))


@calibrator(
    id="fts-svs",
    label="FTS-SVS",
    full_label="structured focal vector scaling (FTS-SVS)",
    color="vermilion",
    marker="*",
    criteria=("nll",),
    changes_predictions=True,
    fixed=("uniform",),
)
class StructuredFocalVectorScaling(_FocalVector):
    """Method `fts-svs`: Psi^gamma(softmax((1 + v) * log p + b)), v and b held near 0.

    Structured vector scaling (Berta et al. 2026) inside the focal map: p is the softmax at the temperature
    of focal temperature scaling, mixed with the uniform distribution at weight 1 / (n + 1), and a ridge
    penalty k / n acts on v and b. Gamma, v and b minimise the penalised log-loss together.

    Attributes
    ----------
    parameters : dict
        `gamma`, `temperature`, `uniform` (weight of the uniform distribution in p) and `coefficients`
        (k, 2): 1 + v and b of each class.
    """

    features = PerClass
    beside: ClassVar = {**FOCAL_MAP, "uniform": SHARE}

    def _search(self, objective: Objective) -> Fit:
        focal = best_focal_map(objective)
        fixed = {
            "temperature": focal.parameters["temperature"],
            "uniform": 1.0 / (len(objective.labels) + 1),
        }
        features = PerClass(log_probabilities(objective.logits, **fixed))
        start = neutral(features)
        return self._minimum(objective, focal, features, start, structured_penalty(features), **fixed)


def focal_map_loss(scores: Array, labels: NDArray[np.int64], shape: Array) -> tuple[float, Array, Array]:
    """Return the summed log-loss of Psi^gamma(softmax(scores)) and its gradients by scores and gamma.

    `shape` is (1,): gamma. Overwrites `scores`.
    """
    from focalcal.calibration.kernels import compiled  # noqa: PLC0415 - numba is loaded by fits only

    value, slope = compiled.focal_map_kernel()(scores, labels, float(shape[0]))
    return value, scores, np.array([slope])
