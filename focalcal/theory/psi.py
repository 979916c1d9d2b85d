"""The calibration map of focal loss, Psi^gamma, its logarithm, its inverse and its binary form in logit space.

C21 Eq. (9) = K24 Eq. (1): with `phi(v) = (1-v)^gamma - gamma (1-v)^(gamma-1) v log v` and `h(v) = v / phi(v)`,
`Psi(v)_i = h(v_i) / sum_j h(v_j)`. It turns the minimiser of focal loss back into the class posterior.

Numerical form. `top` is the most probable class, `e_i = v_i / v_top`, `R = sum of e_i over i != top`,
`B(v) = -v log v / (1-v)` (which lies in [0, 1] and grows with v). Then `phi = (1-v)^gamma (1 + gamma B)` and

    log h_i - log h_top = log e_i - gamma log1p((1 - e_i) / R) - log((1 + gamma B_i) / (1 + gamma B_top))

with `B_top = log1p(R) / R`. Nothing here is a difference of nearly equal numbers: 1 - v_top, which a saturated
softmax rounds to 0, only enters as R, the sum over the *other* classes. Domain: gamma >= -1 (below, phi is
negative near v = 1), any finite logits, any number of classes from 2.
"""

import functools
import math
from typing import Any

import numpy as np

from focalcal.theory.arguments import checked_gamma, checked_matrix, checked_positive, checked_probabilities
from focalcal.theory.inverse import log_psi_inverse, psi_inverse
from focalcal.theory.top_class import (
    MOST_NEGATIVE,
    SMALLEST_DIRECT_SUM,
    denominator_top,
    row_blocks,
)

__all__ = ["binary_logit_map", "log_psi", "log_psi_inverse", "psi", "psi_inverse"]

LARGEST_DIRECT_POWER = 8.0
"""Up to this |gamma| a power of a rounded base stays within 1e-14; above it the base's log1p is scaled instead."""
TAYLOR_RADIUS = 0.5
TAYLOR_DEGREE = 24
"""Binary logits below the radius use a Taylor polynomial of this degree; its remainder is (0.5 / pi)^25."""


def psi(probs: Any, gamma: float) -> np.ndarray:
    """Return Psi^gamma of each row of `probs`, float64 (n, k), rows summing to 1 (C21 Eq. (9), K24 Eq. (1)).

    `probs` is (n, k), non-negative, rows summing to 1 within 1e-5 (they are renormalised); gamma >= -1. gamma = 0
    is the identity, a one-hot row maps to itself, and the first largest entry of a row stays its first largest.
    """
    gamma = checked_gamma(gamma)
    probs = checked_probabilities("probs", probs)
    out = np.empty_like(probs)
    for block in row_blocks(*probs.shape):
        _psi_block(probs[block], gamma, out[block])
    return out


def log_psi(logits: Any, gamma: float, temperature: float = 1.0) -> np.ndarray:
    """Return log Psi^gamma(softmax(logits / temperature)) of each row, float64 (n, k), finite for finite logits.

    `logits` is (n, k), finite; gamma >= -1; temperature > 0. The result's absolute error is a few roundings of
    (|gamma| + 1) * (range of the row) / temperature. Values below the most negative float64 are that float64.
    """
    gamma = checked_gamma(gamma)
    temperature = checked_positive("temperature", temperature)
    logits = checked_matrix("logits", logits)
    out = np.empty_like(logits)
    for block in row_blocks(*logits.shape):
        _log_psi_block(logits[block], gamma, temperature, out[block])
    return out


def binary_logit_map(s: Any, gamma: float) -> np.ndarray:
    """Return logit of Psi^gamma at the binary logit `s`, float64 of the shape of `s`, to relative rounding.

    K24 Sec. 3.2: `(gamma + 1) s - log f(s)`, `f(s) = (1 + gamma a(s)) / (1 + gamma a(-s))`,
    `a(s) = e^s log(1 + e^-s)`; an odd function of s. gamma >= -1, s finite.
    """
    gamma = checked_gamma(gamma)
    s = np.asarray(s, dtype=np.float64)
    if not np.isfinite(s).all():
        raise ValueError(f"s must be finite, got {float(s[~np.isfinite(s)].flat[0])!r}")
    size = np.abs(s)
    with np.errstate(over="ignore", under="ignore"):
        mapped = (gamma + 1.0) * size - _log_asymmetry(size, gamma)
    return np.copysign(np.minimum(mapped, -MOST_NEGATIVE), s)


def _psi_block(probs: np.ndarray, gamma: float, out: np.ndarray) -> None:
    """Write Psi^gamma of `probs` into `out`; both (n, k) float64."""
    positions = np.arange(len(probs))
    top = probs.argmax(axis=1)
    top_prob = probs[positions, top]
    others = probs.copy()
    others[positions, top] = 0.0
    rest = others.sum(axis=1)
    if rest.min() < SMALLEST_DIRECT_SUM:
        _psi_rows_by_logarithm(probs, gamma, out, rest < SMALLEST_DIRECT_SUM)
        direct = rest >= SMALLEST_DIRECT_SUM
        if direct.any():
            part = np.empty_like(probs[direct])
            _psi_block(probs[direct], gamma, part)
            out[direct] = part
        return
    total = (top_prob + rest)[:, None]
    weights = _top_relative_weights(others, top_prob, rest, total, gamma, out)
    weights[positions, top] = 0.0
    share = weights.sum(axis=1) + 1.0
    weights[positions, top] = 1.0
    weights /= share[:, None]
    _keep_argmax(probs, top_prob, out, 1.0 / share)


def _top_relative_weights(
    others: np.ndarray,
    top_prob: np.ndarray,
    rest: np.ndarray,
    total: np.ndarray,
    gamma: float,
    out: np.ndarray,
) -> np.ndarray:
    """Return h_i / h_top in `out` for the classes other than the top one (whose entry is left undefined)."""
    complement = total - others
    ratio = np.maximum(others, np.finfo(np.float64).tiny, out=out)
    np.log(ratio, out=ratio)
    np.subtract(np.log(total), ratio, out=ratio)
    ratio *= others
    ratio /= complement
    ratio *= gamma
    ratio += 1.0
    np.divide((denominator_top(rest / top_prob, gamma) / top_prob)[:, None], ratio, out=ratio)
    ratio *= others
    if abs(gamma) <= LARGEST_DIRECT_POWER:
        np.divide(rest[:, None], complement, out=complement)
        ratio *= complement**gamma
    else:
        excess = (top_prob[:, None] - others) / rest[:, None]
        np.log1p(excess, out=excess)
        excess *= -gamma
        ratio *= np.exp(excess, out=excess)
    return ratio


def _psi_rows_by_logarithm(probs: np.ndarray, gamma: float, out: np.ndarray, chosen: np.ndarray) -> None:
    """Write Psi^gamma of the `chosen` rows, those within 1e-290 of one-hot, into `out`."""
    with np.errstate(divide="ignore"):
        logits = np.maximum(np.log(probs[chosen]), MOST_NEGATIVE)
    logs = np.empty_like(logits)
    _log_psi_block(logits, gamma, 1.0, logs)
    with np.errstate(under="ignore"):
        out[chosen] = np.exp(logs)


def _log_psi_block(logits: np.ndarray, gamma: float, temperature: float, out: np.ndarray) -> None:
    """Write log Psi^gamma(softmax(logits / temperature)) into `out`; both (n, k) float64."""
    positions = np.arange(len(logits))
    top = logits.argmax(axis=1)
    top_logit = logits[positions, top]
    with np.errstate(over="ignore", under="ignore"):
        gaps = np.subtract(logits, top_logit[:, None])
        gaps /= temperature
        np.maximum(gaps, MOST_NEGATIVE, out=gaps)
        ratios = _log_ratios_to_top(gaps, positions, top, gamma) if gamma else gaps
        np.clip(ratios, MOST_NEGATIVE, 0.0, out=ratios)
        weights = np.exp(ratios)
        weights[positions, top] = 0.0
        log_share = np.log1p(weights.sum(axis=1))
        np.subtract(ratios, log_share[:, None], out=out)
        np.maximum(out, MOST_NEGATIVE, out=out)
    _keep_argmax(logits, top_logit, out, -log_share)


def _log_ratios_to_top(gaps: np.ndarray, positions: np.ndarray, top: np.ndarray, gamma: float) -> np.ndarray:
    """Return log h_i - log h_top, (n, k), from the logit gaps to the top class."""
    odds = np.exp(gaps)
    odds[positions, top] = 0.0
    rest = odds.sum(axis=1)
    log_rest, log_denominator_top = _log_rest_and_denominator(gaps, positions, top, rest, gamma)
    log1p_rest = np.log1p(rest)[:, None]
    # B_i = e_i (log(1 + R) - log e_i) / (1 + R - e_i); e_i underflows long before its product with log e_i matters
    denominators = gamma * (odds * (log1p_rest - gaps) / (1.0 + rest[:, None] - odds)) + 1.0
    direct = rest >= SMALLEST_DIRECT_SUM
    safe_rest = np.where(direct, rest, 1.0)
    powers = np.log1p(-np.expm1(gaps) / safe_rest[:, None])
    if not direct.all():
        powers[~direct] = -log_rest[~direct, None]
    ratios = gaps - gamma * powers - (np.log(denominators) - log_denominator_top[:, None])
    ratios[positions, top] = 0.0
    ratios[gaps == 0.0] = 0.0
    return ratios


def _log_rest_and_denominator(
    gaps: np.ndarray, positions: np.ndarray, top: np.ndarray, rest: np.ndarray, gamma: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return log R and log(1 + gamma B_top), (n,) each, also where R itself has underflowed."""
    with np.errstate(divide="ignore"):
        log_rest = np.log(rest)
        log_denominator = np.log(denominator_top(rest, gamma))
    tiny = rest < SMALLEST_DIRECT_SUM
    if tiny.any():
        hidden = gaps[tiny]
        hidden[positions[: len(hidden)], top[tiny]] = MOST_NEGATIVE
        second = hidden.max(axis=1)
        log_rest[tiny] = second + np.log(np.exp(hidden - second[:, None]).sum(axis=1))
        if gamma == -1.0:
            log_denominator[tiny] = log_rest[tiny] - np.log(2.0)
    return log_rest, log_denominator


def _keep_argmax(values: np.ndarray, top_value: np.ndarray, out: np.ndarray, top_out: np.ndarray) -> None:
    """Make entries of `out` below the top wherever `values` are, and equal to it where they tie.

    Rounding can merge two nearly equal entries; one step of the last place keeps their order.
    """
    reached = out >= top_out[:, None]
    if np.count_nonzero(reached) == len(out):
        return
    tied = values == top_value[:, None]
    below = np.nextafter(top_out, -np.inf)
    rows, columns = np.nonzero(reached & ~tied)
    out[rows, columns] = below[rows]
    rows, columns = np.nonzero(tied)
    out[rows, columns] = top_out[rows]


def _log_asymmetry(size: np.ndarray, gamma: float) -> np.ndarray:
    """Return log f(s) of K24 Sec. 3.2 for s = `size` >= 0, to relative rounding also as s tends to 0."""
    rest = np.exp(-size)
    other = 1.0 + gamma * rest * (size + np.log1p(rest))
    near = np.minimum(size, TAYLOR_RADIUS)
    odd_part = np.zeros_like(near)
    for coefficient in reversed(_odd_taylor_coefficients()):
        odd_part = odd_part * (near * near) + coefficient
    near_zero = np.log1p(gamma * 2.0 * near * odd_part / other)
    with np.errstate(divide="ignore"):
        log_top = np.log(denominator_top(rest, gamma))
    if gamma == -1.0:
        log_top = np.where(rest < SMALLEST_DIRECT_SUM, -size - np.log(2.0), log_top)
    return np.where(size < TAYLOR_RADIUS, near_zero, log_top - np.log(other))


@functools.cache
def _odd_taylor_coefficients() -> tuple[float, ...]:
    """Return the coefficients of s, s^3, s^5, ... of a(s) = e^s log(1 + e^-s), from a' = a - sigmoid."""
    sigmoid = [0.5]
    a = [math.log(2.0)]
    for n in range(TAYLOR_DEGREE):
        square = sum(sigmoid[k] * sigmoid[n - k] for k in range(n + 1))
        a.append((a[n] - sigmoid[n]) / (n + 1))
        sigmoid.append((sigmoid[n] - square) / (n + 1))
    return tuple(a[1::2])
