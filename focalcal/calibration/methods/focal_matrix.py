"""Focal matrix scaling and its parts, with a cross-validated prior.

The map is Psi^gamma(softmax(u (1 + v) * log p + (c I + M) p)), p = softmax(logits / T) with the T of
temperature scaling. Without v and M it has three coefficients: those of focal temperature scaling, gamma and
a temperature T / u, and the gain c, by which a probable class gains more than an improbable one. The slopes
u (1 + v_i) and the matrix M treat each class in its own way: M_ij says how much class i gains where class j
is predicted. Matrix and Dirichlet scaling multiply logarithms of probabilities instead; with probabilities,
the many improbable classes, whose logarithms are large and mostly noise, have no say.

The coefficients minimise the log-loss with a ridge penalty, the structured one of Berta et al. (2026) as a
normal prior: mean 0, variance s for the entries of M, s / k for v, and s / k for intercepts where they take
the place of M p. Cross-validation chooses s together with a prior of its own, log-normal around 0.03: with
few samples, that decides, since held-out losses then say little. The three common coefficients have normal
priors with mean 0, which keep them bounded with any number of samples. Their standard deviations, 0.35 for
log u and log(1 + gamma) and 2 for c, are about the spread of these coefficients over 40 public networks with
5,000 samples each.
No fit of a fold sees anything of what the fold holds out: T, starting point and scales of the steps are its
own.
"""

import functools
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from focalcal.calibration.catalogue import calibrator
from focalcal.calibration.fitting.folds import stratified_folds
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import Fit
from focalcal.calibration.methods.affine import LogLossCalibrator, one_thread
from focalcal.calibration.methods.focal_prior import (
    HIGHEST_LOG_GAMMA,
    LOG_GAMMA_STARTS,
    LOWEST_LOG_GAMMA,
    focal_fit,
)
from focalcal.calibration.parameters import FOCAL_MAP, Numbers, checked_classes
from focalcal.theory.psi import log_psi
from focalcal.theory.top_class import MOST_NEGATIVE, row_blocks

Array = NDArray[np.float64]
VARIANCES = (0.0075, 0.03, 0.12, 0.5, 2.0, 8.0, 32.0)
"""Variances of the prior that cross-validation tries, in this order."""
LIKELY_VARIANCE, LOG_VARIANCE_DEVIATION = 0.03, 0.7
"""Median of the variance, and standard deviation of its logarithm, under its own prior."""
FOLDS, FOLDS_OF_MANY_CLASSES = 5, 2
"""Number of folds, and that above `MOST_CLASSES` classes, where each takes seconds."""
ROUGH_DECREASE, LEAST_DECREASE = 1e-6, 1e-8
"""Fits of folds, and of all samples, stop when a step lowers the loss by less."""
LARGEST_STEP_COUNT = 200
MOST_CLASSES = 200
"""Above so many classes, intercepts take the place of the matrix, which would have too many entries."""
DAMPING = 1e-6
DIFFERENCE = 1e-3
"""Step of the differences from which the curvature by the shape is taken."""
DEVIATIONS = np.array([0.35, 2.0, 0.35])
"""Standard deviations of log u, c and log(1 + gamma) under their priors."""


@dataclass(frozen=True)
class _Map:
    """One fit: log u, c and log(1 + gamma) as `shape` (3,), v and weights as `coefficients` (k, 1 + f)."""

    temperature: float
    shape: Array
    coefficients: Array

    @property
    def parameters(self) -> dict[str, Any]:
        """What `log_focal_matrix` takes."""
        log_common, gain, log_gamma = (float(value) for value in self.shape)
        return {
            "gamma": math.expm1(_bounded(log_gamma)),
            "temperature": self.temperature,
            "gain": gain,
            "slopes": math.exp(log_common) * (1.0 + self.coefficients[:, 0]),
            "weights": self.coefficients[:, 1:],
        }


@dataclass(eq=False)
class _CrossValidated(LogLossCalibrator):
    """Psi^gamma(softmax(slopes * log p + gain * p + weights f)), f = p or 1, with a cross-validated prior."""

    free: ClassVar[tuple[bool, bool, bool]] = (True, True, True)
    """Whether log u, gain and log(1 + gamma) are fitted; they are 0 otherwise."""
    matrix: ClassVar[bool] = True

    @classmethod
    def check_parameters(cls, parameters: Any, classes: Any = None) -> int | None:
        """Return the number of classes of parameters; raise ValueError if they are not allowed."""
        declared = {
            **FOCAL_MAP,
            "gain": Numbers(),
            "slopes": Numbers(("k",)),
            "weights": Numbers(("k", "k" if cls.matrix else 1)),
            "variance": Numbers(low=0.0),
        }
        return checked_classes(declared, parameters, classes)

    def log_map(self, logits: NDArray[np.float64]) -> Array:
        """Return the log-probabilities, (n, k), finite for finite logits."""
        return log_focal_matrix(
            logits, **{name: value for name, value in self.parameters.items() if name != "variance"}
        )

    def _search(self, objective: Objective) -> Fit:
        logits, labels = objective.logits, objective.labels
        with one_thread():
            variance, tried = _best_variance(type(self), logits, labels, objective.threads)
            problem = _Problem(type(self), logits, labels)
            found = problem.fit(variance, problem.start, LEAST_DECREASE)
        return Fit(
            {**found.parameters, "variance": variance},
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
    fixed=("variance",),
)
class FocalMatrixScaling(_CrossValidated):
    """Focal matrix scaling, method `fms`: Psi^gamma(softmax(w * log p + c p + M p)), p = softmax(logits / T).

    It contains focal temperature scaling (K24 Sec. 4.2). With few samples, w is nearly the same for all
    classes and M nearly 0: the prior of w_i around their common value and of M around 0 (after Berta et al.
    2026) has a cross-validated variance. Above 200 classes, intercepts take the place of M p.

    Attributes
    ----------
    parameters : dict
        `gamma`, `temperature`, `gain` c, `slopes` w (k,), `weights` M (k, k) or intercepts (k, 1), and the
        `variance` of the prior.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 3, 500)
    >>> logits = 2 * (np.eye(3)[labels] + rng.normal(size=(500, 3))) + [1.0, 0.0, 0.0]  # favours class 0
    >>> scaling = FocalMatrixScaling().fit(logits, labels)
    >>> bool(scaling.parameters["weights"].sum(axis=1).argmin() == 0)
    True
    """


@calibrator(
    id="sms-cv",
    label="SMS-CV",
    full_label="matrix scaling with a cross-validated prior (SMS-CV)",
    color="purple",
    marker="h",
    criteria=("nll",),
    changes_predictions=True,
    shown=False,
    fixed=("gamma", "variance"),
)
class CrossValidatedMatrixScaling(_CrossValidated):
    """Method `sms-cv`: softmax(w * log p + c p + M p), p = softmax(logits / T): `fms` without gamma.

    Attributes
    ----------
    parameters : dict
        As those of `fms`, with `gamma` 0.
    """

    free = (True, True, False)


@calibrator(
    id="svs-cv",
    label="SVS-CV",
    full_label="vector scaling with a cross-validated prior (SVS-CV)",
    color="green",
    marker="h",
    criteria=("nll",),
    changes_predictions=True,
    shown=False,
    fixed=("gamma", "gain", "variance"),
)
class CrossValidatedVectorScaling(_CrossValidated):
    """Method `svs-cv`: softmax(w * log p + b), p = softmax(logits / T): `fms` without gamma, c and matrix.

    Attributes
    ----------
    parameters : dict
        As those of `fms`, with `gamma` and `gain` 0, and b (k, 1) as `weights`.
    """

    free = (True, False, False)
    matrix = False


def log_focal_matrix(
    logits: ArrayLike, *, gamma: float, temperature: float, gain: float, slopes: ArrayLike, weights: ArrayLike
) -> Array:
    """Return log Psi^gamma(softmax(slopes * log p + gain * p + weights f)), p = softmax(logits / T), (n, k).

    f is p for `weights` (k, k) and 1 for (k, 1).
    """
    logs = log_psi(logits, 0.0, temperature)
    weights = np.asarray(weights)
    with np.errstate(over="ignore", under="ignore"):
        probs = np.exp(logs)
        logs *= slopes
        logs += gain * probs
        logs += weights[:, 0] if weights.shape[1] == 1 else probs @ weights.T
    return log_psi(np.clip(logs, MOST_NEGATIVE, -MOST_NEGATIVE, out=logs), gamma)


class _Problem:
    """The penalised log-loss of samples, as a function of all coefficients."""

    def __init__(self, form: type[_CrossValidated], logits: Array, labels: NDArray[np.int64]) -> None:
        self.samples, self.classes = logits.shape
        self._labels, self._blocks = labels, list(row_blocks(*logits.shape))
        self._free = np.flatnonzero(form.free)
        first = focal_fit(logits, labels, focal=False)
        self.evaluations = first.evaluations
        self._logs = log_psi(logits, 0.0, first.temperature)
        with np.errstate(under="ignore"):
            self._probs = np.exp(self._logs)
        matrix = form.matrix and self.classes <= MOST_CLASSES
        self._features = self._probs if matrix else np.ones((self.samples, 1))
        coefficients = np.zeros((self.classes, 1 + self._features.shape[1]))
        self.start = _Map(first.temperature, self._common_shape(), coefficients)

    def _common_shape(self) -> Array:
        """Return the best shape (3,) with v and weights 0."""
        from scipy import optimize  # noqa: PLC0415 - only fits need it, predictions never do

        def loss(free: Array) -> tuple[float, Array]:
            value, gradient = self._loss(self._whole(free))
            return value, gradient[self._free]

        starts = [np.array([0.0, 0.0, log_gamma])[self._free] for log_gamma in LOG_GAMMA_STARTS]
        best = min(starts, key=lambda start: loss(start)[0])
        options = {"ftol": 1e-10, "gtol": 1e-7}
        return self._whole(optimize.minimize(loss, best, jac=True, method="L-BFGS-B", options=options).x)

    def _whole(self, free: Array) -> Array:
        """Return the shape (3,), given the coordinates of it that are fitted."""
        shape = np.zeros(3)
        shape[self._free] = free
        return shape

    def fit(self, variance: float, start: _Map, least_decrease: float) -> _Map:
        """Return the best map under a prior, searched from a start."""
        from scipy import optimize  # noqa: PLC0415 - only fits need it, predictions never do

        penalty = np.full(self._curvatures.shape, 1.0 / (2.0 * variance * self.samples))
        penalty[:, 0] *= self.classes
        if self._features.shape[1] == 1:
            penalty[:, 1] *= self.classes
        scales = 1.0 / np.sqrt(self._curvatures + 2.0 * penalty + DAMPING * self._curvatures.mean())
        shape_scales, count = self._shape_scales, len(self._free)

        def value_and_gradient(point: Array) -> tuple[float, Array]:
            coefficients = point[count:].reshape(scales.shape) * scales
            shape = self._whole(shape_scales @ point[:count])
            value, by_shape, gradient = self._all_losses(shape, coefficients)
            value += float(np.sum(penalty * coefficients**2))
            gradient += 2.0 * penalty * coefficients
            gradient *= scales
            return value, np.append(by_shape[self._free] @ shape_scales, gradient)

        # Without bounds, of which scipy would make and check lists with one pair per coefficient.
        found = optimize.minimize(
            value_and_gradient,
            np.append(np.linalg.solve(shape_scales, start.shape[self._free]), start.coefficients / scales),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": LARGEST_STEP_COUNT, "ftol": least_decrease, "gtol": 1e-6, "maxcor": 20},
        )
        coefficients = found.x[count:].reshape(scales.shape) * scales
        return _Map(start.temperature, self._whole(shape_scales @ found.x[:count]), coefficients)

    @functools.cached_property
    def _curvatures(self) -> Array:
        """The diagonal of the Hessian of the softmax log-loss at the start (k, 1 + f), which scales steps."""
        log_common, gain, log_gamma = self.start.shape
        scores = math.exp(log_common) * self._logs + gain * self._probs
        probs = np.exp(log_psi(scores, math.expm1(log_gamma)))
        probs *= (1.0 - probs) / self.samples
        of_slopes = np.einsum("ij,ij,ij->j", probs, self._logs, self._logs)
        return np.column_stack([of_slopes, probs.T @ self._features**2])

    @functools.cached_property
    def _shape_scales(self) -> Array:
        """The upper triangular matrix from coordinates with unit curvature at the start to what is fitted."""
        shape, free = self.start.shape, self._free
        gradients = [self._loss(shape + step)[1] for step in DIFFERENCE * np.eye(3)[free]]
        hessian = ((np.array(gradients) - self._loss(shape)[1]) / DIFFERENCE)[:, free]
        values, vectors = np.linalg.eigh((hessian + hessian.T) / 2.0)
        lower = np.linalg.cholesky(vectors * np.maximum(values, 1.0 / self.samples) @ vectors.T)
        return np.linalg.inv(lower).T

    def _loss(self, shape: Array) -> tuple[float, Array]:
        """Return the mean loss with the priors of the shape (3,), and its gradient, for v and weights 0."""
        return self._all_losses(shape, None)[:2]

    def _all_losses(self, shape: Array, coefficients: Array | None) -> tuple[float, Array, Array]:
        """Return the mean loss with the priors of the shape, and its gradients by shape and coefficients.

        `coefficients` (k, 1 + f) are v and the weights; None stands for 0.
        """
        common, gain, log_gamma = math.exp(shape[0]), shape[1], _bounded(shape[2])
        gamma = math.expm1(log_gamma)
        gamma_slope = 1.0 + gamma if log_gamma == shape[2] else 0.0
        slopes: Array | float = common
        if coefficients is not None:
            slopes, weights = (1.0 + coefficients[:, 0]) * common, coefficients[:, 1:]
        total, by_shape, gradient = 0.0, np.zeros(3), np.zeros((self.classes, 1 + self._features.shape[1]))
        loss = _kernel()
        for rows in self._blocks:
            sloped = self._logs[rows] * slopes
            scores = sloped + gain * self._probs[rows]
            if coefficients is not None:
                scores += self._features[rows] @ weights.T
            value, by_gamma = loss(scores, self._labels[rows], gamma)
            total += value
            by_shape += np.vdot(scores, sloped), np.vdot(scores, self._probs[rows]), by_gamma * gamma_slope
            if coefficients is not None:
                gradient[:, 0] += common * np.einsum("ij,ij->j", scores, self._logs[rows])
                gradient[:, 1:] += scores.T @ self._features[rows]
        self.evaluations += 1
        total += float(np.sum((shape / DEVIATIONS) ** 2)) / 2.0
        by_shape += shape / DEVIATIONS**2
        return total / self.samples, by_shape / self.samples, gradient / self.samples


def _best_variance(
    form: type[_CrossValidated], logits: Array, labels: NDArray[np.int64], threads: int
) -> tuple[float, int]:
    """Return the variance chosen by cross-validation, and how many evaluations that took."""
    if len(labels) < 2 * FOLDS:
        return LIKELY_VARIANCE, 0
    count = FOLDS if logits.shape[1] <= MOST_CLASSES else FOLDS_OF_MANY_CLASSES
    fold_of = stratified_folds(labels, count)
    with ThreadPoolExecutor(min(threads, count)) as pool:
        folds = list(pool.map(lambda i: _Fold(form, logits, labels, fold_of == i), range(count)))
        tried: list[Array] = []
        for variance in VARIANCES:
            losses = np.empty(len(labels))
            for fold, own in zip(folds, pool.map(_Fold.losses, folds, [variance] * count), strict=True):
                losses[fold.held] = own
            tried.append(losses)
            if _past_the_best(np.array(tried)):
                break
    best = int(np.argmin(variance_scores(np.array(tried))))
    return VARIANCES[best], sum(fold.problem.evaluations for fold in folds)


class _Fold:
    """A fit to all samples but those held out, from the smallest variance upwards."""

    def __init__(
        self, form: type[_CrossValidated], logits: Array, labels: NDArray[np.int64], held: NDArray[np.bool_]
    ) -> None:
        self.held = held
        self.problem = _Problem(form, logits[~held], labels[~held])
        self._logits, self._labels = logits[held], labels[held]
        self.last = self.problem.start

    def losses(self, variance: float) -> Array:
        """Return the log-loss of each sample held out."""
        self.last = self.problem.fit(variance, self.last, ROUGH_DECREASE)
        logs = log_focal_matrix(self._logits, **self.last.parameters)
        return -logs[np.arange(len(self._labels)), self._labels]


def variance_scores(losses: Array) -> Array:
    """Return minus the log-posterior of the first v variances, given the held-out losses (v, n) of each."""
    away = np.log(np.divide(VARIANCES[: len(losses)], LIKELY_VARIANCE)) / LOG_VARIANCE_DEVIATION
    return losses.sum(axis=1) + away**2 / 2.0


def _past_the_best(losses: Array) -> bool:
    """Return whether to stop: two in a row are worse than the best, or one by two standard errors."""
    scores = variance_scores(losses)
    best = int(np.argmin(scores))
    rise = losses[-1] - losses[best]
    return len(losses) - best > 2 or rise.sum() > 2.0 * rise.std() * len(rise) ** 0.5


def _bounded(log_gamma: float) -> float:
    """Return log(1 + gamma) between its limits, which its prior keeps far away."""
    return min(max(log_gamma, LOWEST_LOG_GAMMA), HIGHEST_LOG_GAMMA)


def _kernel() -> Callable[..., tuple[float, float]]:
    from focalcal.calibration.kernels import compiled  # noqa: PLC0415 - numba is loaded by fits only

    return compiled.focal_map_kernel()
