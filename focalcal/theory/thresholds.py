"""Where the minimiser of focal loss is over- or underconfident (C21 Theorem 8), and M20's gamma*.

phi^gamma (C21 Eq. (10)) rises from 1 to a maximum at tau_oc, crosses 1 at tau_uc < 1/2, and falls to 0. A
minimiser is overconfident if its largest probability is at most tau_oc and underconfident from tau_uc on. phi
is also the ratio g of the focal to the cross-entropy gradient (M20 Prop. 1), so tau_uc is M20's p0 and gamma*
is its inverse.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from focalcal.theory.arguments import (
    checked_above,
    checked_classes,
    checked_gamma,
    checked_probability_values,
    checked_scalar,
)
from focalcal.theory.inverse import log_psi_inverse
from focalcal.theory.top_class import denominator_top

ABOVE_TAU_OC = 0.3
"""Above the root of log v = -2 (1 - v), which is the limit of tau_oc as gamma tends to 0 and its supremum."""
NEWTON_STEPS = 3
"""The Lambert W value loses half its digits near its branch point, p0 = 1/2; Newton steps restore them."""


def phi(v: Any, gamma: float) -> np.ndarray:
    """Return phi^gamma(v) = (1-v)^gamma - gamma (1-v)^(gamma-1) v log v, float64 in the shape of `v`.

    v in [0, 1], with limits at the boundary: 1 at 0; at 1, 0 for gamma > 0, 1 for 0, inf for -1 < gamma < 0
    and 1/2 for -1.
    """
    gamma = checked_gamma(gamma)
    v = checked_probability_values("v", v)
    inside = np.clip(v, np.finfo(np.float64).tiny, np.nextafter(1.0, 0.0))
    complement = 1.0 - inside
    value = complement**gamma * denominator_top(complement / inside, gamma)
    at_one = {0.0: 1.0, -1.0: 0.5}.get(gamma, 0.0 if gamma > 0 else math.inf)
    return np.select([v == 0.0, v == 1.0], [1.0, at_one], value)


def overconfidence_threshold(gamma: float) -> float:
    """Return tau_oc = argmax phi^gamma, gamma > 0: a largest probability up to tau_oc is overconfident.

    The root of 2 (1-v) / log v + 1 - gamma v, which decreases with v (M20 Eq. (9)).
    """
    gamma = checked_above("gamma", gamma)
    low = 1.0 / (gamma + 10.0) ** 2
    high = ABOVE_TAU_OC
    return _root(lambda v: 2.0 * (1.0 - v) / math.log(v) + 1.0 - gamma * v, low, high, 1e-15)


def underconfidence_threshold(gamma: float) -> float:
    """Return tau_uc with phi^gamma(tau_uc) = 1, gamma > 0: from it on, the minimiser is underconfident.

    This is also M20's p0: the probability above which focal loss has smaller gradients than cross-entropy.
    """
    gamma = checked_above("gamma", gamma)
    low = overconfidence_threshold(gamma)
    return _root(lambda v: _log_phi_over_gamma(v, gamma), low, 0.5, 1e-15)


def gamma_star(p0: float) -> float:
    """Return the gamma > 0 with phi^gamma(p0) = 1, for 0 < p0 <= 1/2 (0.0 at 1/2), by M20 Prop. 2.

    `a/b + W_{-1}(-(a^(1 - a/b) / b) log a) / log a`, a = 1 - p0, b = p0 log p0. Above p0 = 1/2, phi
    is below 1 for every gamma > 0, and the formula returns the trivial solution 0.
    """
    from scipy.special import lambertw  # noqa: PLC0415 - as in `_root`

    number = checked_scalar("p0", p0)
    if not 0.0 < number <= 0.5:
        raise ValueError(f"p0 must lie in (0, 0.5], got {number!r}")
    if number == 0.5:
        return 0.0
    log_a, b = math.log1p(-number), number * math.log(number)
    ratio = (1.0 - number) / b
    argument = -math.exp((1.0 - ratio) * log_a) / b * log_a
    gamma = ratio + float(lambertw(argument, -1).real) / log_a
    term = -1.0 / ratio
    for _ in range(NEWTON_STEPS):  # on log(phi) / gamma, which has no root at gamma = 0
        gamma -= (log_a + math.log1p(gamma * term) / gamma) / _slope_in_gamma(gamma, term)
    return gamma


def confidence_region(max_prob: Any, gamma: float) -> np.ndarray:
    """Return "over", "ambiguous" or "under" for each largest probability of a minimiser (C21 Theorem 8)."""
    max_prob = checked_probability_values("max_prob", max_prob)
    over, under = overconfidence_threshold(gamma), underconfidence_threshold(gamma)
    return np.select([max_prob <= over, max_prob >= under], ["over", "under"], "ambiguous")


def minimiser_confidence(max_eta: Any, classes: int, gamma: float) -> np.ndarray:
    """Return max q of the focal minimiser if one class has posterior `max_eta` (n,) and the others are equal.

    C21 Fig. 2. max_eta in [1/classes, 1]; gamma >= -1.
    """
    classes = checked_classes(classes)
    max_eta = np.atleast_1d(checked_probability_values("max_eta", max_eta))
    if max_eta.size and max_eta.min() < 1.0 / classes - 1e-12:
        raise ValueError(
            f"max_eta must be at least 1/classes = {1 / classes!r}, got {float(max_eta.min())!r}"
        )
    with np.errstate(divide="ignore"):
        top, rest = np.log(max_eta), np.log((1.0 - max_eta) / (classes - 1))
    log_eta = np.repeat(np.maximum(rest, -1e300)[:, None], classes, axis=1)
    log_eta[:, 0] = top
    return np.exp(log_psi_inverse(log_eta, gamma)[:, 0])


def largest_overconfident_gamma_near_uniform(classes: int) -> float:
    """Return the gamma below which a nearly uniform minimiser is overconfident, or 0.0.

    At q = 1/K, d log h / d log v < 1 exactly when gamma < K - 2 (K-1) / log K: positive from K = 5 on.
    """
    classes = checked_classes(classes)
    return max(0.0, classes - 2.0 * (classes - 1) / math.log(classes))


def largest_overconfident_gamma(classes: int) -> float:
    """Return the gamma below which some minimiser over `classes` classes is overconfident, or 0.0.

    q is overconfident exactly when sum_i q_i phi(q_max) / phi(q_i) > 1. phi increases from 1 and then
    decreases, so phi(q_i) < phi(q_max) for a smaller q_i requires phi(q_max) > 1. K - 1 equal classes and one
    that vanishes are overconfident if phi(1 / (K-1)) > 1, that is 1 / (K-1) < tau_uc: positive from K = 4 on.
    That no other point is overconfident for a larger gamma is supported by search (unit tests), not proved.
    """
    classes = checked_classes(classes)
    if classes <= 3:
        return 0.0
    share = 1.0 / (classes - 1)
    high = 1.0
    while _log_phi_over_gamma(share, high) > 0:
        high *= 2.0
    return _root(lambda gamma: _log_phi_over_gamma(share, gamma), 1e-12, high, 1e-14)


def _root(function: Callable[[float], float], low: float, high: float, error: float) -> float:
    """Return where a function is 0 between two arguments at which its signs differ, to this error."""
    from scipy.optimize import brentq  # noqa: PLC0415 - half of the start of a job that may not need it

    return float(brentq(function, low, high, xtol=error))


def _log_phi_over_gamma(v: float, gamma: float) -> float:
    """Return log(phi^gamma(v)) / gamma for 0 < v < 1, gamma > 0 (scalar)."""
    term = -v * math.log(v) / (1.0 - v)
    return math.log1p(-v) + math.log1p(gamma * term) / gamma


def _slope_in_gamma(gamma: float, term: float) -> float:
    """Return the derivative in gamma of log(1 + gamma B) / gamma, by a series where cancellation occurs."""
    x = gamma * term
    if abs(x) < 1e-4:
        return term**2 * (2.0 * x / 3.0 - 0.5)
    return term**2 * (1.0 / (1.0 + x) - math.log1p(x) / x) / x
