"""Vector and matrix scaling of log-probabilities, plain and structured."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.catalogue import calibrator
from focalcal.calibration.fitting.continuous import best_temperature
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import Fit
from focalcal.calibration.methods.affine import (
    AffineCalibrator,
    Matrix,
    PerClass,
    fit_coefficients,
    log_probabilities,
)
from focalcal.calibration.parameters import SHARE, TEMPERATURE


@dataclass(eq=False)
class _PlainScaling(AffineCalibrator):
    """Coefficients without a penalty; p = softmax(logits).

    Log-probabilities take the place of the logits of Guo et al., as in probmetrics: adding a constant to the
    logits of a sample then changes nothing. The search starts at temperature scaling.
    """

    def _search(self, objective: Objective) -> Fit:
        features = self.features(log_probabilities(objective.logits))
        start = neutral(features) / best_temperature(objective).parameters["temperature"]
        found = fit_coefficients(features, objective.labels, start, np.zeros_like(start))
        return Fit({"coefficients": found.coefficients}, evaluations=found.evaluations)


@calibrator(
    id="vs",
    label="VS",
    full_label="vector scaling (VS)",
    color="sky",
    marker="<",
    criteria=("nll",),
    changes_predictions=True,
)
class VectorScaling(_PlainScaling):
    """Vector scaling, method `vs`: softmax(w * log p + b) (Guo et al. 2017, Sec. 4.2).

    Attributes
    ----------
    parameters : dict
        `coefficients` (k, 2): slope w and intercept b of each class.
    """

    features = PerClass


@calibrator(
    id="ms",
    label="MS",
    full_label="matrix scaling (MS)",
    color="yellow",
    marker="s",
    criteria=("nll",),
    changes_predictions=True,
    most_classes=30,
    shown=False,
)
class MatrixScaling(_PlainScaling):
    """Matrix scaling, method `ms`: softmax(W log p + b) (Guo et al. 2017, Sec. 4.2).

    Its k (k + 1) free parameters need many times as many samples, hence the limit on the number of classes.

    Attributes
    ----------
    parameters : dict
        `coefficients` (k, k + 1): W and, as the last column, b.
    """

    features = Matrix


@dataclass(eq=False)
class _StructuredScaling(AffineCalibrator):
    """Temperature scaling first, then coefficients with a ridge penalty on what departs from the identity.

    Berta et al. (2026), with the defaults of probmetrics 1.3: the penalty is the number of parameters of a
    kind divided by the number of samples n, k / n for slopes and intercepts, k (k - 1) / n off the diagonal.
    The temperature-scaled probabilities are mixed with the uniform distribution at weight 1 / (n + 1).
    """

    beside: ClassVar = {"temperature": TEMPERATURE, "uniform": SHARE}

    def _search(self, objective: Objective) -> Fit:
        scaling = best_temperature(objective)
        uniform = 1.0 / (len(objective.labels) + 1)
        features = self.features(
            log_probabilities(objective.logits, scaling.parameters["temperature"], uniform)
        )
        start = neutral(features)
        penalty = structured_penalty(features)
        found = fit_coefficients(features, objective.labels, start, penalty, centre=start)
        return Fit(
            {
                "temperature": scaling.parameters["temperature"],
                "uniform": uniform,
                "coefficients": found.coefficients,
            },
            evaluations=scaling.evaluations + found.evaluations,
            boundaries=scaling.boundaries,
        )


@calibrator(
    id="svs",
    label="SVS",
    full_label="structured vector scaling (SVS)",
    color="green",
    marker="p",
    criteria=("nll",),
    changes_predictions=True,
    fixed=("uniform",),
)
class StructuredVectorScaling(_StructuredScaling):
    """Structured vector scaling, method `svs`: softmax((1 + v) * log p + b) (Berta et al. 2026).

    p is the temperature-scaled softmax; a ridge penalty k / n holds v and b near 0.

    Attributes
    ----------
    parameters : dict
        `temperature`, `uniform` (weight of the uniform distribution in p) and `coefficients` (k, 2): 1 + v
        and b of each class.
    """

    features = PerClass


@calibrator(
    id="sms",
    label="SMS",
    full_label="structured matrix scaling (SMS)",
    color="purple",
    marker="H",
    criteria=("nll",),
    changes_predictions=True,
    most_classes=200,
    fixed=("uniform",),
)
class StructuredMatrixScaling(_StructuredScaling):
    """Structured matrix scaling, method `sms`: softmax((I + diag(v) + M) log p + b) (Berta et al. 2026).

    p is the temperature-scaled softmax; a ridge penalty of k / n holds v and b near 0, one of k (k - 1) / n
    the off-diagonal matrix M.

    Attributes
    ----------
    parameters : dict
        `temperature`, `uniform` (weight of the uniform distribution in p) and `coefficients` (k, k + 1): the
        matrix and, as the last column, b.
    """

    features = Matrix


def neutral(features: PerClass | Matrix) -> NDArray[np.float64]:
    """Return the coefficients whose scores are the log-probabilities."""
    classes = features.logs.shape[1]
    if isinstance(features, PerClass):
        return np.tile([1.0, 0.0], (classes, 1))
    return np.eye(classes, classes + 1)


def structured_penalty(features: PerClass | Matrix) -> NDArray[np.float64]:
    """Return the ridge penalty of structured scaling for each coefficient."""
    samples, classes = features.logs.shape
    penalty = np.full_like(neutral(features), classes / samples)
    if isinstance(features, Matrix):
        penalty[:, :-1][~np.eye(classes, dtype=bool)] *= classes - 1
    return penalty
