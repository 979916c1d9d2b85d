"""The gamma above which focal loss has smaller gradients than cross-entropy from p0 on (M20 Prop. 2)."""

import math
from typing import Any

import numpy as np
from scipy.special import lambertw

from focalcal.theory.arguments import checked_scalar
from focalcal.theory.thresholds import phi, underconfidence_threshold

NEWTON_STEPS = 3
"""The Lambert W value loses half its digits near its branch point, p0 = 1/2; Newton steps restore them."""


def gradient_ratio(p: Any, gamma: float) -> np.ndarray:
    """Return g(p, gamma) = phi^gamma(p), the ratio of focal to cross-entropy gradient (M20 Prop. 1)."""
    return phi(p, gamma)


def gamma_star(p0: float) -> float:
    """Return the gamma > 0 with g(p0, gamma) = 1, for 0 < p0 <= 1/2 (0.0 at 1/2), by M20 Prop. 2.

    `a/b + W_{-1}(-(a^(1 - a/b) / b) log a) / log a`, a = 1 - p0, b = p0 log p0. Above p0 = 1/2, g is
    below 1 for every gamma > 0, and the formula returns the trivial solution 0.
    """
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
    for _ in range(NEWTON_STEPS):
        gamma -= _log_ratio_over_gamma(gamma, log_a, term) / _slope_of_log_ratio(gamma, term)
    return gamma


def gamma_star_inverse(gamma: float) -> float:
    """Return the p0 in (0, 1/2) with g(p0, gamma) = 1, gamma > 0; it equals C21's tau_uc."""
    return underconfidence_threshold(gamma)


def _log_ratio_over_gamma(gamma: float, log_a: float, term: float) -> float:
    """Return log g / gamma = log a + log(1 + gamma B) / gamma, B = `term`, which has no root at gamma = 0."""
    return log_a + math.log1p(gamma * term) / gamma


def _slope_of_log_ratio(gamma: float, term: float) -> float:
    """Return the derivative in gamma of log(1 + gamma B) / gamma, by a series where cancellation occurs."""
    x = gamma * term
    if abs(x) < 1e-4:
        return term**2 * (2.0 * x / 3.0 - 0.5)
    return term**2 * (1.0 / (1.0 + x) - math.log1p(x) / x) / x
