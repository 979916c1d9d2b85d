"""Focal matrix scaling and its parts, with a cross-validated prior.

The map is Psi^gamma(softmax(u (1 + v) * log p + M p)), p = softmax(logits / T) with the T of temperature
scaling: focal temperature scaling (of temperature T / u) with a slope u (1 + v_i) for each class and a matrix
M, which adds M_ij p_j to the score of class i. Matrix and Dirichlet scaling multiply logarithms of
probabilities instead. Here M_ij says how much class i gains where class j is predicted, and the many
improbable classes, whose logarithms are large and mostly noise, have no say.

The coefficients minimise the log-loss with a ridge penalty, the structured one of Berta et al. (2026) as a
normal prior: mean 0, variance s for the entries of M, s / k for v, and s / k for intercepts where they take
the place of M p. The variance s is chosen by cross-validation from 0, which is focal temperature scaling with
its priors (`fts-prior`), upwards. log(1 + gamma) has the prior of `fts-prior`, log u a standard normal one.
No fit of a fold sees anything of what the fold holds out: T, gamma, starting point and scales of the steps
are its own.
"""

import functools
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from focalcal.calibration.catalogue import calibrator
from focalcal.calibration.fitting.folds import stratified_folds
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import Fit
from focalcal.calibration.methods.affine import LogLossCalibrator, one_thread
from focalcal.calibration.methods.focal_prior import (
    GAMMA_DEVIATION,
    HIGHEST_LOG_GAMMA,
    LOWEST_LOG_GAMMA,
    focal_fit,
)
from focalcal.theory.psi import log_psi
from focalcal.theory.top_class import MOST_NEGATIVE, row_blocks

Array = NDArray[np.float64]
VARIANCES = (0.0, 0.015, 0.05, 0.15, 0.5, 1.5, 5.0, 15.0)
"""Variances of the prior that cross-validation tries, in this order."""
FOLDS, FOLDS_OF_MANY_CLASSES = 5, 2
"""Number of folds, and that above `MOST_CLASSES` classes, where each takes seconds."""
STANDARD_ERRORS = 1.0
"""By how many standard errors a smaller variance may be worse than the best and still be taken."""
ROUGH_DECREASE, LEAST_DECREASE = 1e-6, 1e-8
"""Fits of folds, and of all samples, stop when a step lowers the loss by less."""
LARGEST_STEP_COUNT = 200
MOST_CLASSES = 200
"""Above so many classes, intercepts take the place of the matrix, which would have too many entries."""
DAMPING = 1e-6
DIFFERENCE = 1e-3
"""Step of the differences from which the curvature by log u and log(1 + gamma) is taken."""


@dataclass(frozen=True)
class _Map:
    """One fit: log(1 + gamma), T, slopes (k,) and weights (k, f) of the features."""

    log_gamma: float
    temperature: float
    slopes: Array
    weights: Array
    common: float = 1.0
    """The common factor u of the slopes."""

    @property
    def shape(self) -> Array:
        """Both log u and log(1 + gamma)."""
        return np.array([math.log(self.common), self.log_gamma])

    @property
    def gamma(self) -> float:
        return math.expm1(self.log_gamma)

    def log_probabilities(self, logits: ArrayLike) -> Array:
        return log_focal_matrix(logits, self.gamma, self.temperature, self.slopes, self.weights)


@dataclass(eq=False)
class _CrossValidated(LogLossCalibrator):
    """Psi^gamma(softmax(slopes * log p + weights f)), f = p or 1, with a cross-validated prior."""

    focal: ClassVar[bool]
    matrix: ClassVar[bool]

    def predict_log_proba(self, logits: ArrayLike) -> Array:
        """Return the log-probabilities, (n, k), finite for finite logits."""
        own = self.parameters
        return log_focal_matrix(
            logits,
            own.get("gamma", 0.0),
            own["temperature"],
            np.asarray(own["slopes"]),
            np.asarray(own["matrix"] if "matrix" in own else own["intercepts"]),
        )

    def _search(self, objective: Objective) -> Fit:
        logits, labels = objective.logits, objective.labels
        matrix = self.matrix and logits.shape[1] <= MOST_CLASSES
        with one_thread():
            variance, tried = _best_variance(logits, labels, self.focal, matrix, objective.threads)
            problem = _Problem(logits, labels, self.focal, matrix)
            found = problem.fit(variance, problem.start, LEAST_DECREASE)
        weights = {"matrix": found.weights} if matrix else {"intercepts": found.weights[:, 0]}
        gamma = {"gamma": found.gamma} if self.focal else {}
        return Fit(
            {
                **gamma,
                "temperature": found.temperature,
                "variance": variance,
                "slopes": found.slopes,
                **weights,
            },
            evaluations=tried + problem.evaluations,
            boundaries={"variance": "high"} if variance == VARIANCES[-1] else {},
        )


@calibrator(
    id="fms",
    label="FMS",
    full_label="focal matrix scaling (FMS)",
    color="vermilion",
    marker="H",
    criteria=("nll",),
    changes_predictions=True,
    recommendable=False,
    fixed=("variance",),
)
class FocalMatrixScaling(_CrossValidated):
    """Focal matrix scaling, method `fms`: Psi^gamma(softmax(w * log p + M p)), p = softmax(logits / T).

    It contains focal temperature scaling (K24 Sec. 4.2), to which it returns with few samples: the prior of
    w around 1 and M around 0 (after Berta et al. 2026) has a cross-validated variance, which may be 0.
    Above 200 classes, intercepts take the place of M p.

    Attributes
    ----------
    parameters : dict
        `gamma`, `temperature`, `variance` of the prior, `slopes` w (k,), and `matrix` M (k, k) or
        `intercepts` (k,).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 3, 500)
    >>> logits = 2 * (np.eye(3)[labels] + rng.normal(size=(500, 3))) + [1.0, 0.0, 0.0]  # favours class 0
    >>> scaling = FocalMatrixScaling().fit(logits, labels)
    >>> bool(scaling.parameters["matrix"].sum(axis=1).argmin() == 0)
    True
    """

    focal, matrix = True, True


@calibrator(
    id="sms-cv",
    label="SMS-CV",
    full_label="matrix scaling with a cross-validated prior (SMS-CV)",
    color="purple",
    marker="h",
    criteria=("nll",),
    changes_predictions=True,
    recommendable=False,
    shown=False,
    fixed=("variance",),
)
class CrossValidatedMatrixScaling(_CrossValidated):
    """Method `sms-cv`: softmax(w * log p + M p), p = softmax(logits / T): `fms` without gamma.

    Attributes
    ----------
    parameters : dict
        `temperature`, `variance` of the prior, `slopes` w (k,), and `matrix` M (k, k) or `intercepts` (k,).
    """

    focal, matrix = False, True


@calibrator(
    id="svs-cv",
    label="SVS-CV",
    full_label="vector scaling with a cross-validated prior (SVS-CV)",
    color="green",
    marker="h",
    criteria=("nll",),
    changes_predictions=True,
    recommendable=False,
    shown=False,
    fixed=("variance",),
)
class CrossValidatedVectorScaling(_CrossValidated):
    """Method `svs-cv`: softmax(w * log p + b), p = softmax(logits / T): `fms` without gamma and matrix.

    Attributes
    ----------
    parameters : dict
        `temperature`, `variance` of the prior, `slopes` w (k,) and `intercepts` b (k,).
    """

    focal, matrix = False, False


def log_focal_matrix(
    logits: ArrayLike, gamma: float, temperature: float, slopes: Array, weights: Array
) -> Array:
    """Return log Psi^gamma(softmax(slopes * log p + weights f)), p = softmax(logits / temperature), (n, k).

    f is p for `weights` (k, k) and 1 for (k,) or (k, 1).
    """
    logs = log_psi(logits, 0.0, temperature)
    weights = weights.reshape(len(slopes), -1)
    with np.errstate(over="ignore", under="ignore"):
        scores = logs * slopes
        scores += _features(logs, weights.shape[1]) @ weights.T
    return log_psi(np.clip(scores, MOST_NEGATIVE, -MOST_NEGATIVE, out=scores), gamma)


def _features(logs: Array, count: int) -> Array:
    """Return the features (n, count) that the weights multiply: probabilities, or one constant."""
    return np.exp(logs) if count > 1 else np.ones((len(logs), 1))


class _Problem:
    """The penalised log-loss of samples, as a function of all coefficients."""

    def __init__(self, logits: Array, labels: NDArray[np.int64], focal: bool, matrix: bool) -> None:
        self.samples, self.classes = logits.shape
        self.labels, self.focal = labels, focal
        first = focal_fit(logits, labels, focal=focal)
        self.evaluations = first.evaluations
        features = self.classes if matrix else 1
        weights = np.zeros((self.classes, features))
        self._plain = _Map(0.0, first.plain_temperature, np.ones(self.classes), weights)
        common = first.plain_temperature / first.temperature
        slopes = np.full(self.classes, common)
        self.start = replace(self._plain, log_gamma=first.log_gamma, slopes=slopes, common=common)
        self._logs = log_psi(logits, 0.0, first.plain_temperature)
        with np.errstate(under="ignore"):
            self._features = _features(self._logs, features)
        self._blocks = list(row_blocks(*logits.shape))

    @functools.cached_property
    def _curvatures(self) -> Array:
        """The diagonal of the Hessian of the softmax log-loss at the start (k, 1 + f), which scales steps."""
        probs = np.exp(log_psi(self._logs, self.start.gamma, 1.0 / self.start.common))
        probs *= (1.0 - probs) / self.samples
        of_slopes = np.einsum("ij,ij,ij->j", probs, self._logs, self._logs)
        return np.column_stack([of_slopes, probs.T @ self._features**2])

    def fit(self, variance: float, start: _Map, least_decrease: float) -> _Map:
        """Return the best map under a prior; at variance 0, the focal map itself.

        From the focal map, the search also starts at gamma 0: a matrix can make another gamma the best.
        """
        if variance == 0.0:
            return self.start
        starts = [start, self._plain] if start is self.start and self.focal else [start]
        found = [self._descend(variance, one, least_decrease) for one in starts]
        return min(found, key=lambda one: one[0])[1]

    def _descend(self, variance: float, start: _Map, least_decrease: float) -> tuple[float, _Map]:
        """Return the smallest penalised loss that is found from a start, and its map."""
        from scipy import optimize  # noqa: PLC0415 - only fits need it, predictions never do

        penalty = np.full(self._curvatures.shape, 1.0 / (2.0 * variance * self.samples))
        penalty[:, 0] *= self.classes
        if self._features.shape[1] == 1:
            penalty[:, 1] *= self.classes
        scales = 1.0 / np.sqrt(self._curvatures + 2.0 * penalty + DAMPING * self._curvatures.mean())
        shape_scales = self._shape_scales
        shape = start.shape
        packed = np.column_stack([start.slopes / start.common - 1.0, start.weights]) / scales
        most = np.full(packed.size + 2, np.inf)
        least = -most
        if self.focal:
            least[-1], most[-1] = np.array([LOWEST_LOG_GAMMA, HIGHEST_LOG_GAMMA]) / shape_scales[1, 1]
        else:
            least[-1] = most[-1] = 0.0

        def value_and_gradient(point: Array) -> tuple[float, Array]:
            coefficients = point[:-2].reshape(scales.shape) * scales
            value, gradient, by_shape = self._loss(coefficients, shape_scales @ point[-2:])
            value += float(np.sum(penalty * coefficients**2))
            log_common = float(shape_scales[0] @ point[-2:])
            value += log_common**2 / (2.0 * self.samples)
            by_shape[0] += log_common / self.samples
            gradient += 2.0 * penalty * coefficients
            gradient *= scales
            return value, np.append(gradient, by_shape @ shape_scales)

        found = optimize.minimize(
            value_and_gradient,
            np.append(packed, np.linalg.solve(shape_scales, shape)),
            jac=True,
            method="L-BFGS-B",
            bounds=optimize.Bounds(least, most),
            options={"maxiter": LARGEST_STEP_COUNT, "ftol": least_decrease, "gtol": 1e-6, "maxcor": 20},
        )
        coefficients = found.x[:-2].reshape(scales.shape) * scales
        log_common, log_gamma = shape_scales @ found.x[-2:]
        common = float(np.exp(log_common))
        slopes = (1.0 + coefficients[:, 0]) * common
        found_map = _Map(float(log_gamma), start.temperature, slopes, coefficients[:, 1:], common)
        return float(found.fun), found_map

    @functools.cached_property
    def _shape_scales(self) -> Array:
        """The upper triangular matrix from coordinates with unit curvature to the shape."""
        (common, cross), (_, gamma) = self._shape_curvatures
        common = max(common, 0.0) + 1.0 / self.samples
        gamma = max(gamma - cross * cross / common, 0.01 * gamma, 1.0 / self.samples)
        return np.array([[common**-0.5, -cross / common * gamma**-0.5], [0.0, gamma**-0.5]])

    @functools.cached_property
    def _shape_curvatures(self) -> Array:
        """The Hessian (2, 2) of the loss by log u and log(1 + gamma) at the start, from differences."""
        if not self.focal:
            return np.array([[self._curvatures[:, 0].sum(), 0.0], [0.0, 1.0]])
        coefficients, shape = np.zeros(self._curvatures.shape), self.start.shape
        steps = DIFFERENCE * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        slopes = [self._loss(coefficients, shape + step)[2] for step in steps]
        hessian = (np.array(slopes[1:]) - slopes[0]) / DIFFERENCE
        return (hessian + hessian.T) / 2.0

    def _loss(self, coefficients: Array, shape: Array) -> tuple[float, Array, Array]:
        """Return the mean loss with the prior of gamma, and its gradients by coefficients and shape.

        `coefficients` (k, 1 + f) are v and the weights, `shape` (2,) is (log u, log(1 + gamma)).
        """
        common, gamma = np.exp(shape[0]), math.expm1(shape[1])
        slopes, weights = (1.0 + coefficients[:, 0]) * common, coefficients[:, 1:]
        total, by_gamma, gradient = 0.0, 0.0, np.zeros_like(coefficients)
        loss = _kernel()
        for rows in self._blocks:
            scores = self._logs[rows] * slopes
            scores += self._features[rows] @ weights.T
            value, slope = loss(scores, self.labels[rows], gamma)
            total += value
            by_gamma += slope
            gradient[:, 0] += np.einsum("ij,ij->j", scores, self._logs[rows])
            gradient[:, 1:] += scores.T @ self._features[rows]
        self.evaluations += 1
        by_common = float(gradient[:, 0] @ slopes)
        gradient[:, 0] *= common
        total += shape[1] ** 2 / (2.0 * GAMMA_DEVIATION**2)
        by_log_gamma = by_gamma * (1.0 + gamma) + shape[1] / GAMMA_DEVIATION**2 if self.focal else 0.0
        return (
            total / self.samples,
            gradient / self.samples,
            np.array([by_common, by_log_gamma]) / self.samples,
        )


def _best_variance(
    logits: Array, labels: NDArray[np.int64], focal: bool, matrix: bool, threads: int
) -> tuple[float, int]:
    """Return the variance chosen by cross-validation, and how many evaluations that took."""
    if len(labels) < 2 * FOLDS:
        return 0.0, 0
    count = FOLDS if logits.shape[1] <= MOST_CLASSES else FOLDS_OF_MANY_CLASSES
    fold_of = stratified_folds(labels, count)
    with ThreadPoolExecutor(min(threads, count)) as pool:
        folds = list(pool.map(lambda i: _Fold(logits, labels, fold_of == i, focal, matrix), range(count)))
        tried: list[Array] = []
        for variance in VARIANCES:
            losses = np.empty(len(labels))
            for fold, own in zip(folds, pool.map(_Fold.losses, folds, [variance] * count), strict=True):
                losses[fold.held] = own
            tried.append(losses)
            if _past_the_best(np.array(tried)):
                break
    return VARIANCES[chosen_variance(np.array(tried))], sum(fold.problem.evaluations for fold in folds)


class _Fold:
    """A fit to all samples but those held out, from the smallest variance upwards."""

    def __init__(
        self, logits: Array, labels: NDArray[np.int64], held: NDArray[np.bool_], focal: bool, matrix: bool
    ) -> None:
        self.held = held
        self.problem = _Problem(logits[~held], labels[~held], focal, matrix)
        self._logits, self._labels = logits[held], labels[held]
        self._last = self.problem.start

    def losses(self, variance: float) -> Array:
        """Return the log-loss of each sample held out."""
        self._last = self.problem.fit(variance, self._last, ROUGH_DECREASE)
        return -self._last.log_probabilities(self._logits)[np.arange(len(self._labels)), self._labels]


def _past_the_best(losses: Array) -> bool:
    """Return whether to stop: two in a row are worse than the best, or one by two standard errors."""
    best = int(np.argmin(losses.mean(axis=1)))
    rise = losses[-1] - losses[best]
    return len(losses) - best > 2 or rise.mean() > 2.0 * rise.std() / len(rise) ** 0.5


def chosen_variance(losses: Array) -> int:
    """Return which of several variances, ascending, to take, given the held-out losses (v, n) of each.

    It is the smallest whose mean loss exceeds the best by at most `STANDARD_ERRORS` of the paired difference
    (after Breiman et al. 1984, Sec. 3.4.3).
    """
    excess = losses - losses[np.argmin(losses.mean(axis=1))]
    errors = excess.std(axis=1) / losses.shape[1] ** 0.5
    return int(np.argmax(excess.mean(axis=1) <= STANDARD_ERRORS * errors))


def _kernel() -> Callable[..., tuple[float, float]]:
    from focalcal.calibration.kernels import compiled  # noqa: PLC0415 - numba is loaded by fits only

    return compiled.focal_map_kernel()
