"""Affine maps of log-probabilities, fitted by log-loss: what vector, matrix and Dirichlet scaling share.

Each class has coefficients that multiply features of a sample and add up to that class's score. `PerClass`
has two features per class, its log-probability and 1, so that the scores are `slope * log p + intercept`.
`Matrix` gives every class all log-probabilities and 1. The scores are linear in the coefficients, so the
log-loss of their softmax is convex. `fit_coefficients` runs L-BFGS in coordinates in which the Hessian at the
start has identity blocks on its diagonal, one per class: log-probabilities are strongly correlated, and
without this change matrix scaling of a 10-class network takes 60 times as many evaluations. Samples pass in
blocks of rows, so that temporaries stay small.
"""

import functools
import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from focalcal.calibration.calibrators import Calibrator
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import NoMinimumError
from focalcal.calibration.parameters import Numbers, checked_classes
from focalcal.theory.psi import log_psi
from focalcal.theory.top_class import row_blocks

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

Array = NDArray[np.float64]
LOWEST_LOG = float(np.log(np.finfo(np.float32).tiny))
"""Log-probabilities below this, -87.3, count as this, as in probmetrics: affine maps of them stay finite."""
LARGEST_STEP_COUNT = 5000
LEAST_DECREASE = 1e-9
LARGEST_SLOPE = 1e-6
"""L-BFGS stops when a step lowers the loss by less, or when no slope in its coordinates is larger."""
DAMPING = 1e-6
"""Share of its mean diagonal that each block of the Hessian gets added, so that it can be factorised."""
Loss = Callable[[Array, NDArray[np.int64], Array], tuple[float, Array, Array]]
"""Takes scores (m, k), which it may overwrite, labels (m,) and shape parameters (s,); returns the summed loss
and its gradients by the scores (m, k) and by the shape parameters (s,)."""


@dataclass(frozen=True)
class PerClass:
    """Features `log p_i` and 1 of class i; coefficients (k, 2)."""

    logs: Array

    def scores(self, rows: slice, coefficients: Array) -> Array:
        """Return `slope * log p + intercept`."""
        return self.logs[rows] * coefficients[:, 0] + coefficients[:, 1]

    def gradient(self, rows: slice, residuals: Array) -> Array:
        """Return the sums over samples of residual times feature."""
        return np.stack([np.einsum("ij,ij->j", residuals, self.logs[rows]), residuals.sum(axis=0)], axis=1)

    def moments(self, weights: Array) -> Array:
        """Return the weighted sums of products of the two features."""
        first, second = (np.einsum("ij,ij->j", weights, power) for power in (self.logs, self.logs**2))
        return np.stack([second, first, first, weights.sum(axis=0)], axis=1).reshape(-1, 2, 2)


@dataclass(frozen=True)
class Matrix:
    """Features `log p_1, ..., log p_k, 1` of every class; coefficients (k, k + 1)."""

    logs: Array

    def scores(self, rows: slice, coefficients: Array) -> Array:
        """Return `W log p + b` for coefficients `[W, b]`."""
        return self.logs[rows] @ coefficients[:, :-1].T + coefficients[:, -1]

    def gradient(self, rows: slice, residuals: Array) -> Array:
        """Return the sums over samples of residual times feature."""
        return np.hstack([residuals.T @ self.logs[rows], residuals.sum(axis=0)[:, None]])

    def moments(self, weights: Array) -> Array:
        """Return the weighted sums of products of all features, to float32: they only guide the steps."""
        features = np.hstack([self.logs, np.ones((len(self.logs), 1))]).astype(np.float32)
        columns = weights.T.astype(np.float32)
        return np.stack([(features * column[:, None]).T @ features for column in columns]).astype(np.float64)


@dataclass(frozen=True)
class Solution:
    """Coefficients (k, f) and shape parameters (s,) of the smallest penalised loss, and its cost."""

    coefficients: Array
    shape: Array
    evaluations: int


@dataclass(eq=False)
class LogLossCalibrator(Calibrator):
    """A calibrator that is fitted by log-loss alone; `score_` is its log-loss on the data fitted to."""

    criterion: str = field(default="nll", kw_only=True)

    def fit_objective(self, objective: Objective, *, scored: bool = True) -> Self:
        """Return this calibrator, fitted to an objective that several calibrators may share."""
        if self.criterion != "nll":
            raise ValueError(
                f"criterion is {self.criterion!r}; this calibrator minimises only 'nll', the log-loss"
            )
        return super().fit_objective(objective, scored=scored)


@dataclass(eq=False)
class AffineCalibrator(LogLossCalibrator):
    """The softmax, or Psi^gamma of the softmax, of an affine map of log-probabilities.

    Attributes
    ----------
    parameters : dict
        `coefficients` of the `features`; where the method has them, `gamma`, and `temperature` and `uniform`
        of `log_probabilities`.
    """

    features: ClassVar[type[PerClass | Matrix]]
    beside: ClassVar[Mapping[str, Numbers]] = {}
    """The parameters beside the coefficients."""

    @classmethod
    def check_parameters(cls, parameters: Any, classes: Any = None) -> int | None:
        """Return the number of classes of parameters; raise ValueError if they are not allowed."""
        shape = ("k", "k+1") if cls.features is Matrix else ("k", 2)
        return checked_classes({**cls.beside, "coefficients": Numbers(shape)}, parameters, classes)

    def log_map(self, logits: NDArray[np.float64]) -> Array:
        """Return log Psi^gamma(softmax(scores)), float64 (n, k), finite for finite logits."""
        own = self.parameters
        logs = log_probabilities(logits, own.get("temperature", 1.0), own.get("uniform", 0.0))
        scores = self.features(logs).scores(slice(None), np.asarray(own["coefficients"]))
        return log_psi(scores, own.get("gamma", 0.0))


def log_probabilities(logits: ArrayLike, temperature: float = 1.0, uniform: float = 0.0) -> Array:
    """Return log((1 - uniform) softmax(logits / temperature) + uniform / k), `LOWEST_LOG` or more, (n, k)."""
    logs = log_psi(logits, 0.0, temperature)
    if uniform:
        with np.errstate(under="ignore"):
            np.exp(logs, out=logs)
        logs *= 1.0 - uniform
        logs += uniform / logs.shape[1]
        np.log(logs, out=logs)
    return np.maximum(logs, LOWEST_LOG, out=logs)


def softmax_loss(scores: Array, labels: NDArray[np.int64], shape: Array) -> tuple[float, Array, Array]:
    """Return the summed log-loss of softmax(scores) and its gradient by the scores; no shape parameters."""
    rows = np.arange(len(labels))
    scores -= scores.max(axis=1, keepdims=True)
    of_labels = scores[rows, labels]
    with np.errstate(under="ignore"):
        np.exp(scores, out=scores)
    sums = scores.sum(axis=1)
    scores /= sums[:, None]
    scores[rows, labels] -= 1.0
    return float(np.sum(np.log(sums) - of_labels)), scores, shape


def one_thread() -> AbstractContextManager:
    """Return a context in which linear algebra has one thread.

    The products here are small, and results must not depend on the number of processors.
    """
    return _linear_algebra().limit(limits=1, user_api="blas")


@functools.cache
def _linear_algebra() -> "ThreadpoolController":
    """Return what limits the threads of the loaded libraries; finding them takes as long as a small fit."""
    from scipy import optimize  # noqa: F401, PLC0415 - loads a library of its own, which counts
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415 - only fits need it, predictions never do

    return ThreadpoolController()


def fit_coefficients(
    features: PerClass | Matrix,
    labels: NDArray[np.int64],
    start: Array,
    penalty: Array,
    *,
    centre: Array | float = 0.0,
    loss: Loss = softmax_loss,
    shape: ArrayLike = (),
    shape_bounds: tuple[float, float] = (-np.inf, np.inf),
    least_decrease: float = LEAST_DECREASE,
    coordinates: Array | None = None,
) -> Solution:
    """Return the smallest mean loss plus `sum(penalty * (coefficients - centre)**2)`.

    `start`, `penalty` and `centre` have the shape (k, f) of the coefficients. The shape parameters of the
    loss (s,) are fitted with them, within their bounds, without a penalty. The steps are taken in
    `coordinates`, by default those `whitening` the Hessian at the start. Raise NoMinimumError if there is no
    minimum, which without a penalty is noticed before or soon after the search starts, or if the steps do
    not converge.
    """
    from scipy import optimize  # noqa: PLC0415 - only fits need it, predictions never do

    samples, classes = features.logs.shape
    penalised = bool(np.any(penalty))
    if not penalised:
        refuse_separated_classes(features.logs, labels)
    labels_of = [(rows, labels[rows]) for rows in row_blocks(samples, classes)]
    shape = np.asarray(shape, dtype=np.float64)

    def unpacked(point: Array) -> tuple[Array, Array]:
        moved, own = np.split(point, [start.size])
        return start + np.matmul(moved.reshape(len(start), 1, -1), coordinates)[:, 0], own

    def value_and_gradient(point: Array) -> tuple[float, Array]:
        coefficients, own = unpacked(point)
        total, slopes, own_slopes = 0.0, np.zeros_like(start), np.zeros_like(own)
        for rows, targets in labels_of:
            value, residuals, by_shape = loss(features.scores(rows, coefficients), targets, own)
            total += value
            slopes += features.gradient(rows, residuals)
            own_slopes += by_shape if own.size else 0.0
        if not penalised and total < math.log(2.0):
            raise NoMinimumError(
                "every sample can be given a probability above 1/2, so that the log-loss falls for ever with "
                "larger coefficients; use a method with a penalty, or more samples"
            )
        away = coefficients - centre
        slopes = slopes / len(labels) + 2.0 * penalty * away
        moved_slopes = np.matmul(coordinates, slopes[:, :, None])[:, :, 0]
        gradient = np.concatenate([moved_slopes.ravel(), own_slopes / len(labels)])
        return total / len(labels) + float(np.sum(penalty * away**2)), gradient

    with one_thread():
        if coordinates is None:
            coordinates = whitening(hessian_blocks(features, start), penalty)
        found = optimize.minimize(
            value_and_gradient,
            np.concatenate([np.zeros(start.size), shape]),
            jac=True,
            method="L-BFGS-B",
            bounds=[(-np.inf, np.inf)] * start.size + [shape_bounds] * shape.size if shape.size else None,
            options={
                "maxiter": LARGEST_STEP_COUNT,
                "maxfun": 2 * LARGEST_STEP_COUNT,
                "ftol": least_decrease,
                "gtol": LARGEST_SLOPE,
            },
        )
    # Status 2 is a line search that rounding ended, which happens at the minimum.
    if found.status == 1:
        raise NoMinimumError(f"the log-loss has no minimum within {LARGEST_STEP_COUNT} steps of L-BFGS")
    return Solution(*unpacked(found.x), int(found.nfev))


def refuse_separated_classes(logs: Array, labels: NDArray[np.int64]) -> None:
    """Raise NoMinimumError if a class has no finite best coefficients of its own log-probability and of 1.

    That is so where it has no samples, or where its log-probability is higher for all its samples than for
    all others: a steeper slope with the same threshold then lowers the log-loss for ever.
    """
    rows, classes = np.arange(len(labels)), logs.shape[1]
    lowest = np.full(classes, np.inf)
    np.minimum.at(lowest, labels, logs[rows, labels])
    others = logs.copy()
    others[rows, labels] = -np.inf
    separated = np.flatnonzero(lowest > others.max(axis=0))
    if separated.size:
        raise NoMinimumError(
            f"{separated.size} of {classes} classes, such as class {separated[0]}, have no samples or are "
            f"separated from all others by their own probability, so that their best coefficients are "
            f"infinite unless all are penalised; use a method that does so, such as svs, or more samples"
        )


def hessian_blocks(features: PerClass | Matrix, point: Array) -> Array:
    """Return per class the block (k, f, f) of the Hessian of the mean softmax log-loss at coefficients.

    The block of class i is `sum over samples of p_i (1 - p_i) x x' / n`.
    """
    samples, classes = features.logs.shape
    weights = np.empty((samples, classes))
    for rows in row_blocks(samples, classes):
        probs = np.exp(log_psi(features.scores(rows, point), 0.0))
        weights[rows] = probs * (1.0 - probs) / samples
    return features.moments(weights)


def whitening(blocks: Array, penalty: Array) -> Array:
    """Return per class the inverse Cholesky factor (k, f, f) of its block, with the penalty's share.

    Blocks that rounding leaves indefinite, as those of tiny or saturated logits, are damped more: any
    coordinates lead to the same minimum.
    """
    blocks = blocks.copy()
    diagonals = np.einsum("kff->kf", blocks)  # a writable view
    diagonals += 2.0 * penalty
    means, damping = diagonals.mean(axis=1, keepdims=True), DAMPING
    diagonals += damping * means + DAMPING**2
    while True:
        try:
            return np.linalg.inv(np.linalg.cholesky(blocks))
        except np.linalg.LinAlgError:
            if damping > 1.0:  # rounding cannot be the reason
                raise NoMinimumError("the Hessian of the log-loss is not positive definite") from None
            diagonals += 9.0 * damping * means
            damping *= 10.0
