"""The focal map of vector scaling: gamma, slopes and intercepts fitted together by log-loss.

Psi^gamma(softmax(u)) in terms of the scores u (notation of `theory.psi`): with the top class t,
`e_i = exp(u_i - u_t)`, `R = sum of e_i over i != t` and `rho_i = log h_i - log h_t`, the loss of label y is
`log(1 + sum of exp(rho_i) over i != t) - rho_y`. Its gradient is arranged so that 1 - q_t, which a saturated
softmax q rounds to 0, only enters as R.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from focalcal.calibration.catalogue import calibrator
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import (
    K24_GAMMAS,
    Fit,
    boundaries_hit,
    checked_temperatures,
    continuous_search,
)
from focalcal.calibration.methods.affine import (
    AffineCalibrator,
    Array,
    PerClass,
    fit_coefficients,
    log_probabilities,
)
from focalcal.calibration.methods.scaling import neutral, structured_penalty

LOWEST_GAMMA = -0.999
"""At gamma = -1 the denominator of the focal map vanishes for a saturated softmax."""
SMALLEST_REST = 1e-300
SMALL_REST = 1e-3
"""Below this R, a Taylor polynomial of the slope of B_top avoids a difference of nearly equal numbers."""


@dataclass(eq=False)
class _FocalVector(AffineCalibrator):
    """Psi^gamma(softmax(w * log p + b)); the search starts at focal temperature scaling."""

    gammas: Sequence[float] = K24_GAMMAS
    temperatures: ArrayLike | None = None

    def _from_focal_scaling(self, objective: Objective) -> Fit:
        """Return the gamma and temperature of the smallest log-loss, where the search starts."""
        return continuous_search(objective, "nll", self.gammas, checked_temperatures(self.temperatures))

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
        lowest = max(min(self.gammas), LOWEST_GAMMA)
        found = fit_coefficients(
            features,
            objective.labels,
            start,
            penalty,
            centre=start,
            loss=focal_map_loss,
            shape=[max(focal.parameters["gamma"], lowest)],
            shape_bounds=(lowest, max(self.gammas)),
        )
        gamma = float(found.shape[0])
        return Fit(
            {"gamma": gamma, **others, "coefficients": found.coefficients},
            evaluations=focal.evaluations + found.evaluations,
            boundaries=boundaries_hit(gamma=(gamma, self.gammas)),
        )


@calibrator(
    id="fts-vs",
    label="FTS-VS",
    full_label="focal vector scaling (FTS-VS)",
    color="vermilion",
    marker="8",
    criteria=("nll",),
    narrowest_range=1.2e-3,
    changes_predictions=True,
)
@dataclass(eq=False)
class FocalVectorScaling(_FocalVector):
    """Method `fts-vs`: Psi^gamma(softmax(w * log p + b)) with p = softmax(logits).

    Vector scaling in place of the temperature of focal temperature scaling (K24 Sec. 4.2). Gamma, slopes
    and intercepts minimise the log-loss together.

    Parameters
    ----------
    gammas : sequence of float, optional
        Gamma stays between the smallest and the largest; by default those of K24.
    temperatures : array (t,), optional
        The search starts at the best temperature between the first and the last.

    Attributes
    ----------
    parameters : dict
        `gamma` and `coefficients` (k, 2): slope w and intercept b of each class.
    """

    features = PerClass

    def _search(self, objective: Objective) -> Fit:
        focal = self._from_focal_scaling(objective)
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
    narrowest_range=1.2e-3,
    changes_predictions=True,
    fixed=("uniform",),
)
@dataclass(eq=False)
class StructuredFocalVectorScaling(_FocalVector):
    """Method `fts-svs`: Psi^gamma(softmax((1 + v) * log p + b)), v and b held near 0.

    Structured vector scaling (Berta et al. 2026) inside the focal map: p is the softmax at the temperature
    of focal temperature scaling, mixed with the uniform distribution at weight 1 / (n + 1), and a ridge
    penalty k / n acts on v and b. Gamma, v and b minimise the penalised log-loss together.

    Parameters
    ----------
    gammas : sequence of float, optional
        Gamma stays between the smallest and the largest; by default those of K24.
    temperatures : array (t,), optional
        The temperature is the best one between the first and the last.

    Attributes
    ----------
    parameters : dict
        `gamma`, `temperature`, `uniform` (weight of the uniform distribution in p) and `coefficients`
        (k, 2): 1 + v and b of each class.
    """

    features = PerClass

    def _search(self, objective: Objective) -> Fit:
        focal = self._from_focal_scaling(objective)
        fixed = {
            "temperature": focal.parameters["temperature"],
            "uniform": 1.0 / (len(objective.labels) + 1),
        }
        features = PerClass(log_probabilities(objective.logits, **fixed))
        start = neutral(features)
        return self._minimum(objective, focal, features, start, structured_penalty(features), **fixed)


def focal_map_loss(scores: Array, labels: NDArray[np.int64], shape: Array) -> tuple[float, Array, Array]:
    """Return the summed log-loss of Psi^gamma(softmax(scores)) and its gradients by scores and gamma.

    `shape` is (1,): gamma.
    """
    gamma = shape[0]
    rows = np.arange(len(labels))
    top = scores.argmax(axis=1)
    with np.errstate(under="ignore"):
        gaps = scores - scores[rows, top, None]
        odds = np.exp(gaps)
        odds[rows, top] = 0.0
        rest = np.maximum(odds.sum(axis=1, keepdims=True), SMALLEST_REST)
        log_total = np.log1p(rest)
        # Classes below the top: q = odds / total, and B and its slope by log q.
        below = odds / (1.0 + rest)
        complement = 1.0 - below
        logs = gaps - log_total
        share = below / complement
        b_below = -share * logs
        b_slope = -share * (1.0 + logs / complement)
        denominators = 1.0 + gamma * b_below
        # The top class.
        b_top = log_total / rest
        b_top_slope = _top_slope(rest, log_total)
        denominator_of_top = 1.0 + gamma * b_top
        # Classes as far below the top as rounding allows have no say: their log1p would be log(1 / 0).
        powers = np.log1p((1.0 - odds) / rest)
        ratios = gaps - gamma * powers - np.log(denominators / denominator_of_top)
        ratios[rows, top] = -np.inf
        weights = np.exp(ratios)
        total = 1.0 + weights.sum(axis=1)
        ratios[rows, top] = 0.0
        loss = float(np.sum(np.log(total) - ratios[rows, labels]))
        # Gradients by the ratios, 0 at the top class.
        residuals = weights / total[:, None]
        residuals[rows, labels] -= 1.0
        residuals[rows, top] = 0.0
        of_top = -residuals.sum(axis=1, keepdims=True)
        by_gamma = b_top / denominator_of_top - powers - b_below / denominators
        gamma_slope = np.sum(residuals * by_gamma)
        slopes = residuals * (1.0 + gamma * (share - b_slope / denominators))
        by_top = of_top * (rest + gamma * (1.0 - rest * b_top_slope / denominator_of_top)) / (1.0 + rest)
        along = slopes.sum(axis=1, keepdims=True)
        gradient = slopes - odds / rest * by_top - below * along
        gradient[rows, top] = (by_top - along / (1.0 + rest))[:, 0]
    return loss, gradient, np.array([gamma_slope])


def _top_slope(rest: Array, log_total: Array) -> Array:
    """Return the derivative of B_top = log(1 + R) / R by log q_top: ((1 + R) log(1 + R) - R) / R^2."""
    small = np.minimum(rest, SMALL_REST)
    series = 0.5 - small * (1.0 / 6.0 - small * (1.0 / 12.0 - small / 20.0))
    large = np.maximum(rest, SMALL_REST)
    exact = ((1.0 + large) * np.where(rest > SMALL_REST, log_total, 1.0) - large) / large**2
    return np.where(rest > SMALL_REST, exact, series)
