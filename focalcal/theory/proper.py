"""The proper part of focal loss, L* = L o Psi^-1 (K24 Prop. 2 and 4), and conditional risks."""

from typing import Any

import numpy as np

from focalcal.theory.arguments import checked_gamma, checked_probabilities, checked_probability_values
from focalcal.theory.inverse import psi_inverse
from focalcal.theory.psi import psi


def focal_loss(p: Any, gamma: float) -> np.ndarray:
    """Return -(1-p)^gamma log p, float64 in the shape of `p`, the true class's probability in [0, 1].

    inf at p = 0; at p = 1 the limit: 0 for gamma > -1, 1 for gamma = -1.
    """
    gamma = checked_gamma(gamma)
    p = checked_probability_values("p", p)
    inside = np.clip(p, np.finfo(np.float64).tiny, np.nextafter(1.0, 0.0))
    value = -((1.0 - inside) ** gamma) * np.log(inside)
    return np.select([p == 0.0, p == 1.0], [np.inf, 1.0 if gamma == -1.0 else 0.0], value)


def focal_curvature(p: Any, gamma: float) -> np.ndarray:
    """Return the second derivative of focal loss in p, 0 < p < 1 (K24 A.1), float64 in the shape of `p`.

    `(1-p)^(gamma-2) / p^2 * (-gamma (gamma-1) p^2 log p + 2 gamma p (1-p) + (1-p)^2)`.
    """
    gamma = checked_gamma(gamma)
    p = checked_probability_values("p", p)
    complement = 1.0 - p
    bracket = -gamma * (gamma - 1.0) * p**2 * np.log(p) + 2.0 * gamma * p * complement + complement**2
    return complement ** (gamma - 2.0) / p**2 * bracket


def conditional_risk(q: Any, posterior: Any, gamma: float) -> np.ndarray:
    """Return the focal risk sum_i p_i L(q_i), (n,), of `q` (n, k) under `posterior` (n, k) or (1, k)."""
    q = checked_probabilities("q", q)
    posterior = checked_probabilities("posterior", posterior)
    return _expected(focal_loss(q, gamma), posterior)


def proper_loss(q: Any, gamma: float) -> np.ndarray:
    """Return L*(q, y) for every class y, (n, k): focal loss at Psi^-1(q) (K24 Prop. 4; Prop. 2 for k = 2)."""
    return focal_loss(psi_inverse(q, gamma), gamma)


def proper_conditional_risk(q: Any, posterior: Any, gamma: float) -> np.ndarray:
    """Return sum_i p_i L*(q)_i, (n,), of `q` (n, k) under `posterior` (n, k) or (1, k); minimal at q = p."""
    posterior = checked_probabilities("posterior", posterior)
    return _expected(proper_loss(q, gamma), posterior)


def properness_margin(q: Any, posterior: Any, gamma: float) -> np.ndarray:
    """Return the excess of the proper risk at `q` over that at the posterior, (n,), never negative."""
    posterior = checked_probabilities("posterior", posterior)
    least = proper_conditional_risk(posterior, posterior, gamma)
    return proper_conditional_risk(q, posterior, gamma) - least


def confidence_gain(q: Any, gamma: float) -> np.ndarray:
    """Return max Psi^gamma(q) - max q of each row, (n,).

    K24 Prop. 5 says this is never negative for gamma >= 0. That holds for 2 and 3 classes; from 4 classes on
    there are counterexamples, as C21 Theorem 8 implies (see `thresholds.largest_overconfident_gamma`).
    """
    q = checked_probabilities("q", q)
    return psi(q, gamma).max(axis=1) - q.max(axis=1) / q.sum(axis=1)


def keeps_order(q: Any, gamma: float) -> np.ndarray:
    """Return whether Psi^gamma keeps the order of each row's entries, (n,) bool, up to rounding of ties."""
    q = checked_probabilities("q", q)
    order = q.argsort(axis=1)
    mapped = np.take_along_axis(psi(q, gamma), order, axis=1)
    return np.all(np.diff(mapped, axis=1) >= -1e-15, axis=1)


def _expected(losses: np.ndarray, posterior: np.ndarray) -> np.ndarray:
    """Return sum_i p_i loss_i, (n,), ignoring the loss of classes with probability 0."""
    weighted = np.zeros(np.broadcast_shapes(posterior.shape, losses.shape))
    return np.multiply(posterior, losses, where=posterior > 0, out=weighted).sum(axis=1)
