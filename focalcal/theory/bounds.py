"""Temperatures that bound the binary focal calibration map (K24 Proposition 3 and Figure 3).

Temperature scaling with T maps the binary logit s to s / T; focal calibration maps it to
`binary_logit_map(s)`. For s > 0 (both are odd) `sigmoid(s / T_high) <= FC(s) <= sigmoid(s / T_low)` holds
for |s| <= max_logit exactly when 1 / T_high and 1 / T_low bound the slope `c(s) = binary_logit_map(s) / s`
from below and above: the tightest pair comes from the extrema of c, without a scan over T.
"""

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from focalcal.theory.arguments import checked_above, checked_gamma
from focalcal.theory.psi import binary_logit_map

LOG2 = math.log(2.0)
COARSE_POINTS = 129
LARGEST_SCANNED_LOGIT = 64.0
"""Beyond this, c(s) = gamma + 1 - log(1 + gamma) / s up to e^-64, so that no extremum is missed."""
SMALLEST_SCANNED_LOGIT = 1e-2
"""Below this, c(s) differs from c(0+) by a relative 1e-9 at most if an extremum lies there."""


def theoretical_temperatures(gamma: float) -> tuple[float, float]:
    """Return K24 Prop. 3's (low, high) = (1 / (gamma+1), 1 / (gamma+1 - log(gamma+1)/2)) for gamma >= 0.

    For -1 < gamma < 0 the map lies between the same two temperatures, which change places (`certificate`,
    Theorem C).

    Parameters
    ----------
    gamma : float
        Above -1.

    Returns
    -------
    low, high : float
        Temperatures between which Psi^gamma of two classes acts.

    Examples
    --------
    >>> low, high = theoretical_temperatures(1.0)
    >>> low, round(high, 4)
    (0.5, 0.6048)
    """
    gamma = checked_above("gamma", gamma, -1.0)
    limit, other = 1.0 / (gamma + 1.0), 1.0 / (gamma + 1.0 - math.log1p(gamma) / 2.0)
    return min(limit, other), max(limit, other)


def tightest_temperatures(gamma: float, max_logit: float = 20.0) -> tuple[float, float]:
    """Return the tightest (low, high) temperatures that enclose the binary map on |s| <= max_logit.

    Exact to rounding: 1 / low and 1 / high are the supremum and infimum of c.

    Parameters
    ----------
    gamma : float
        Above -1.
    max_logit : float
        Above 0, or infinite.

    Returns
    -------
    low, high : float
        The temperatures.

    Examples
    --------
    >>> [round(temperature, 4) for temperature in tightest_temperatures(1.0)]
    [0.5088, 0.5644]
    """
    smallest, largest = slope_range(gamma, max_logit)
    return 1.0 / largest, 1.0 / smallest


def slope_range(gamma: float, max_logit: float = 20.0) -> tuple[float, float]:
    """Return the infimum and supremum of c(s) over 0 < s <= max_logit, gamma > -1, max_logit possibly inf."""
    gamma = checked_above("gamma", gamma, -1.0)
    max_logit = math.inf if max_logit == math.inf else checked_above("max_logit", max_logit)
    last = gamma + 1.0 if math.isinf(max_logit) else float(logit_slope(max_logit, gamma))
    boundary = [initial_slope(gamma), last]
    inside = [slope for _, slope in _interior_extrema(gamma, max_logit)]
    return min(boundary + inside), max(boundary + inside)


def logit_slope(s: Any, gamma: float) -> np.ndarray:
    """Return c(s) = binary_logit_map(s) / s, float64 in the shape of `s`, with its limit at s = 0."""
    s = np.asarray(s, dtype=np.float64)
    safe = np.where(s == 0, 1.0, s)
    return np.where(s == 0, initial_slope(gamma), binary_logit_map(safe, gamma) / safe)


def initial_slope(gamma: float) -> float:
    """Return c(0+) = gamma + 1 - 2 gamma (log 2 - 1/2) / (1 + gamma log 2), the map's slope at s = 0."""
    gamma = checked_gamma(gamma)
    return gamma + 1.0 - initial_excess(gamma)


def initial_excess(gamma: Any, log2: Any = LOG2) -> Any:
    """Return gamma + 1 - c(0+); `certificate` calls this with balls of interval arithmetic."""
    return 2.0 * gamma * (log2 - 0.5) / (1.0 + gamma * log2)


def minimising_logit(gamma: float) -> float:
    """Return the s > 0 that minimises c(s), or 0.0 if the infimum is c(0+); gamma >= 0."""
    gamma = checked_gamma(gamma, minimum=0.0)
    lower = [(slope, s) for s, slope in _interior_extrema(gamma, math.inf) if slope < initial_slope(gamma)]
    return min(lower)[1] if lower else 0.0


def critical_gamma(log2: Any = LOG2) -> Any:
    """Return the largest gamma for which c(0+) is the infimum of c; above it, an interior minimum is lower.

    Up to it, c rises from s = 0. It is the positive root of the coefficient of s^3 in log f(s), which with L
    = log 2 and the Taylor coefficients a1 = L - 1/2, a2 = (L - 3/4)/2, a3 = a2/3 of a(s) = e^s log(1 + e^-s)
    is `a3 (1 + gamma L)^2 - gamma a1 a2 (1 + gamma L) + gamma^2 a1^3 / 3`, a quadratic in gamma. Of a ball of
    interval arithmetic around log 2, the result is a ball.
    """
    a1, a2 = log2 - 0.5, (log2 - 0.75) / 2.0
    a3 = a2 / 3.0
    square = a3 * log2**2 - a1 * a2 * log2 + a1**3 / 3.0
    linear = 2.0 * a3 * log2 - a1 * a2
    return (-linear + (linear**2 - 4.0 * square * a3) ** 0.5) / (2.0 * square)


def scanned_temperatures(
    gamma: float, max_logit: float = 20.0, temperature_step: float = 0.001, logit_step: float = 0.001
) -> tuple[float, float]:
    """Return (low, high) by K24's own method: try every T on a grid against every s on a grid.

    A temperature is a bound if sigmoid(s / T) lies on one side of FC(s) at every logit; low is the largest
    lower bound, high the smallest upper bound. Comparisons are made at -|s|, where a float64 probability
    keeps its digits. Slow by design: this checks `tightest_temperatures`.
    """
    gamma = checked_gamma(gamma, minimum=0.0)
    logits = -np.arange(1, round(max_logit / logit_step) + 1) * logit_step
    focal = expit(binary_logit_map(logits, gamma))
    low, high = 0.0, math.inf
    for step in range(1, math.ceil(1.5 / temperature_step)):
        temperature = step * temperature_step
        scaled = expit(logits / temperature)
        if (scaled <= focal).all():
            low = max(low, temperature)
        if (scaled >= focal).all():
            high = min(high, temperature)
    return low, high


def _interior_extrema(gamma: float, max_logit: float) -> list[tuple[float, float]]:
    """Return (s, c(s)) at the extrema of c inside (0, max_logit): bracketed on a grid, then solved for."""
    grid = np.geomspace(SMALLEST_SCANNED_LOGIT, LARGEST_SCANNED_LOGIT, COARSE_POINTS)
    grid = grid[: np.searchsorted(grid, max_logit, side="right")]
    rising = np.diff(binary_logit_map(grid, gamma) / grid) > 0
    found = []
    for turn in np.flatnonzero(rising[1:] != rising[:-1]):
        s = _stationary_point(float(grid[turn]), float(grid[turn + 2]), gamma)
        found.append((s, float(logit_slope(s, gamma))))
    return found


def _stationary_point(low: float, high: float, gamma: float) -> float:
    """Return the root of c' in [low, high], or the midpoint if rounding hides the sign change."""
    if _slope_numerator(low, gamma) * _slope_numerator(high, gamma) > 0:
        return 0.5 * (low + high)
    return float(brentq(_slope_numerator, low, high, args=(gamma,), xtol=1e-12))


def _slope_numerator(s: float, gamma: float) -> float:
    """Return s^2 c'(s) = log f(s) - s (log f)'(s), with a' = a - sigmoid (scalar)."""
    decay = math.exp(-s)
    near = math.log1p(decay) / decay
    far = decay * (s + math.log1p(decay))
    sigmoid = 1.0 / (1.0 + decay)
    near_term, far_term = 1.0 + gamma * near, 1.0 + gamma * far
    derivative = gamma * (near - sigmoid) / near_term + gamma * (far - (1.0 - sigmoid)) / far_term
    return math.log(near_term / far_term) - s * derivative
