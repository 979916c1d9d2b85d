"""Psi^gamma of a softmax as two temperatures: one for the top class, one among the other classes.

Let q = softmax(z / T), t its top class, R = (1 - q_t) / q_t the odds against it, L(T) = -log R, p =
Psi^gamma(q), B(v) = -v log v / (1 - v) and e(v) = |gamma| B(v) / (1 - max(-gamma, 0) log 2). For gamma > -1
and R <= 1:

  rest  log(p_i / p_j) = (z_i - z_j) / T + E with |E| <= e(q_i) + e(q_j), for all i, j other than t;
  top   log(p_t / (1 - p_t)) = (gamma + 1) L(T) - log(1 + gamma) + E with, for the largest q_m of the rest,
        |E| <= |gamma| log(1 + R) + |log(1 - gamma R / (2 (1 + gamma)))| + e(q_m);
  T     (gamma + 1) L(T) lies between L(T / (gamma + 1)) and L(T / (gamma + 1)) - gamma log(K - 1).

As R tends to 0, so do both E. Psi^gamma then keeps the temperature T among the rest and acts on the top
class like T / (gamma + 1), apart from a bounded offset: focal temperature scaling is two temperatures. The
offset -log(1 + gamma) grows as gamma tends to -1, where the slope gamma + 1 vanishes: the map then caps the
log-odds.

Proof. p_i is proportional to h(q_i) = q_i / phi(q_i), phi(v) = (1 - v)^gamma (1 + gamma B(v)). For v <= 1/2,
0 <= -log(1 - v) <= 2 v log 2 <= B(v) <= log 2, since the first is convex and B(v) / v decreases to 2 log 2.
Hence |log phi(v)| <= e(v), which increases: line 1. The odds against t after the map are the sum of h(q_i)
over the rest, divided by h(q_t). The sum is 1 - q_t times a mean of 1 / phi(q_i), so within e(q_m) in
logarithms; -log h(q_t) = gamma log(1 - q_t) - log q_t + log(1 + gamma log(1 + R) / R) with 1 - R / 2 <=
log(1 + R) / R <= 1: line 2. Line 3 compares the norms of order 1 and gamma + 1 of exp(-gaps / T).
"""

import math
from typing import Any

import numpy as np

from focalcal.theory.arguments import checked_above

CLEARLY_OFF = 0.1
"""From this relative difference of two temperatures on, they predict the sign of gamma."""


def implied_gamma(top_temperature: float, rest_temperature: float) -> float:
    """Return T_rest / T_top - 1: the gamma that acts with these temperatures on confident predictions.

    Its sign is what two temperatures predict of the gamma that data choose: positive if the other classes
    need a higher temperature than the top class.

    Parameters
    ----------
    top_temperature, rest_temperature : float
        Above 0: of the top class against the rest, and among the rest.

    Returns
    -------
    float
        Above -1.

    Examples
    --------
    >>> implied_gamma(0.5, 1.5)
    2.0
    """
    top = checked_above("top_temperature", top_temperature)
    return checked_above("rest_temperature", rest_temperature) / top - 1.0


def is_clear(gamma: float) -> bool:
    """Return whether temperatures that imply this gamma differ clearly: by `CLEARLY_OFF` or more."""
    return max(gamma, 1.0 / (1.0 + gamma) - 1.0) >= CLEARLY_OFF


def largest_errors(odds_against: Any, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds of |E| among the rest and of the top class (module docstring), float64 in one shape.

    They hold for every prediction with these odds R against its top class, whatever the rest.

    Parameters
    ----------
    odds_against : array
        From 0 to 1.
    gamma : float
        Above -1.
    """
    gamma = checked_above("gamma", gamma, -1.0)
    odds = np.asarray(odds_against, dtype=np.float64)
    if not ((odds >= 0) & (odds <= 1)).all():
        raise ValueError(
            f"odds_against must lie in [0, 1], got {float(odds[~((odds >= 0) & (odds <= 1))][0])!r}"
        )
    most = odds / (1.0 + odds)
    share = np.where(most > 0, most, 0.5)
    one = abs(gamma) * np.where(most > 0, -share * np.log(share) / (1.0 - share), 0.0)
    one /= 1.0 - max(-gamma, 0.0) * math.log(2.0)
    top = abs(gamma) * np.log1p(odds) + np.abs(np.log1p(-gamma * odds / (2.0 * (1.0 + gamma)))) + one
    return 2.0 * one, top
