"""The calibration map of focal loss, Psi^gamma, its logarithm, its inverse and its binary form in logits.

C21 Eq. (10), (12), (13) = K24 Eq. (1): with `phi(v) = (1-v)^gamma - gamma (1-v)^(gamma-1) v log v`, `h(v) =
v / phi(v)`, `Psi(v)_i = h(v_i) / sum_j h(v_j)`. It turns the minimiser of focal loss back into the class
posterior.

Numerical form. `top` is the most probable class, `e_i = v_i / v_top`, `R = sum of e_i over i != top`,
`B(v) = -v log v / (1-v)` (which lies in [0, 1] and grows with v). Then `phi = (1-v)^gamma (1 + gamma B)` and

    log h_i - log h_top = log e_i - gamma log1p((1 - e_i) / R) - log((1 + gamma B_i) / (1 + gamma B_top))

with `B_top = log1p(R) / R`. Nothing here is a difference of nearly equal numbers: 1 - v_top, which a
saturated softmax rounds to 0, only enters as R, the sum over the *other* classes. Domain: gamma >= -1 (below,
phi is negative near v = 1), any finite logits, any number of classes from 2.

Blocks are held classes first, (k, rows), for few classes, where NumPy reduces along rows slowly, and rows
first for many, where its pairwise summation matters; `axis` is the axis of the classes.
"""

import functools
import math
from typing import Any

import numpy as np

from focalcal.theory.arguments import (
    SUM_TOLERANCE,
    checked_gamma,
    checked_matrix,
    checked_positive,
    checked_probabilities,
    checked_shape,
)
from focalcal.theory.inverse import log_psi_inverse, psi_inverse
from focalcal.theory.top_class import MOST_NEGATIVE, SMALLEST_DIRECT_SUM, denominator_top, row_blocks

__all__ = ["binary_logit_map", "log_psi", "log_psi_inverse", "psi", "psi_inverse"]

MOST_CLASSES_FIRST = 64
"""Up to this many classes a block is transposed, so that reductions run along contiguous rows."""
LARGEST_DIRECT_POWER = 8.0
"""Up to this |gamma| a power of a rounded base is within 1e-14; above it the base's log1p is scaled."""
TAYLOR_RADIUS = 0.5
TAYLOR_DEGREE = 24
"""Binary logits below the radius use a Taylor polynomial of this degree; its remainder is (0.5 / pi)^25."""
SMALLEST_NORMAL = np.finfo(np.float64).tiny


def psi(probs: Any, gamma: float) -> np.ndarray:
    """Return Psi^gamma of each row of `probs`, float64 (n, k), rows summing to 1 (C21 Eq. (12), K24 Eq. (1)).

    `probs` is (n, k), non-negative, rows summing to 1 within 1e-5 (they are renormalised); gamma >= -1.
    gamma = 0 is the identity, a one-hot row maps to itself, and a row's argmax stays.
    """
    gamma = checked_gamma(gamma)
    probs = checked_shape("probs", probs)
    out = np.empty_like(probs)
    for block in row_blocks(*probs.shape):
        axis, values = _oriented(probs[block])
        mapped = _psi_block(values, gamma, axis)
        if mapped is None:
            checked_probabilities("probs", probs)
        np.copyto(out[block], mapped.T if axis == 0 else mapped)
    return out


def log_psi(logits: Any, gamma: float, temperature: float = 1.0) -> np.ndarray:
    """Return log Psi^gamma(softmax(logits / temperature)), float64 (n, k), finite for finite logits.

    `logits` is (n, k), finite; gamma >= -1; temperature > 0. The absolute error is a few roundings of
    (|gamma| + 1) * (range of the row) / temperature. Values below the most negative float64 are that float64.
    """
    gamma = checked_gamma(gamma)
    temperature = checked_positive("temperature", temperature)
    logits = checked_matrix("logits", logits)
    out = np.empty_like(logits)
    for block in row_blocks(*logits.shape):
        axis, values = _oriented(logits[block])
        mapped = _log_psi_block(values, gamma, temperature, axis)
        np.copyto(out[block], mapped.T if axis == 0 else mapped)
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


def _oriented(block: np.ndarray) -> tuple[int, np.ndarray]:
    """Return the class axis and a contiguous copy of `block` (rows, k) laid out along it."""
    if block.shape[1] <= MOST_CLASSES_FIRST:
        return 0, block.T.copy(order="C")
    return 1, block.copy(order="C")


def _psi_block(probs: np.ndarray, gamma: float, axis: int) -> np.ndarray | None:
    """Return Psi^gamma of the distributions along `axis`, or None if `probs` holds something else."""
    smallest = probs.min()
    top_prob = probs.max(axis=axis, keepdims=True)
    tops = _TopEntries(probs, top_prob, axis)
    others = probs.copy()
    tops.fill(others, 0.0)
    # infinite, NaN or huge entries end up in the total, which is then not 1
    with np.errstate(invalid="ignore", over="ignore"):
        rest = others.sum(axis=axis, keepdims=True) + (tops.count - 1.0) * top_prob
        distance = np.abs(top_prob + rest - 1.0).max()
    if not (smallest >= 0 and distance <= SUM_TOLERANCE):
        return None
    if rest.min() < SMALLEST_DIRECT_SUM:
        return _psi_with_saturated_rows(probs, gamma, axis, rest < SMALLEST_DIRECT_SUM)
    if smallest < SMALLEST_NORMAL:
        np.maximum(probs, SMALLEST_NORMAL, out=probs)
    weights = _weights_below_top(probs, others, top_prob, rest, gamma)
    top_weight = top_prob / denominator_top(rest / top_prob, gamma)
    share = weights.sum(axis=axis, keepdims=True) + tops.count * top_weight
    weights /= share
    return tops.restore(weights, top_weight / share)


def _weights_below_top(
    probs: np.ndarray, others: np.ndarray, top_prob: np.ndarray, rest: np.ndarray, gamma: float
) -> np.ndarray:
    """Return h(v) (1 - v_top)^gamma below the top, 0 at it; `probs` and `others` are consumed."""
    total = top_prob + rest
    complement = total - others
    weights = np.log(probs, out=probs)
    np.subtract(np.log(total), weights, out=weights)
    weights *= others
    weights /= complement
    weights *= gamma
    weights += 1.0
    np.divide(others, weights, out=weights)
    if abs(gamma) <= LARGEST_DIRECT_POWER:
        np.divide(rest, complement, out=complement)
        weights *= _power(complement, gamma)
    else:
        excess = np.subtract(top_prob, others, out=others)
        excess /= rest
        np.log1p(excess, out=excess)
        excess *= -gamma
        with np.errstate(under="ignore"):
            weights *= np.exp(excess, out=excess)
    return weights


def _power(base: np.ndarray, exponent: float) -> np.ndarray:
    """Return base^exponent, by multiplication for small whole exponents, where that is many times faster."""
    if exponent != int(exponent) or exponent < 0:
        return base**exponent
    remaining = int(exponent)
    result = base if remaining & 1 else np.ones_like(base)
    while remaining := remaining >> 1:
        base = base * base
        if remaining & 1:
            result = result * base
    return result


def _psi_with_saturated_rows(probs: np.ndarray, gamma: float, axis: int, saturated: np.ndarray) -> np.ndarray:
    """Return Psi^gamma where some rows are within 1e-290 of one-hot: those go through logarithms."""
    by_row = probs.T if axis == 0 else probs
    saturated = saturated.ravel()
    out = np.empty_like(by_row)
    with np.errstate(divide="ignore", under="ignore"):
        logits = np.maximum(np.log(by_row[saturated]), MOST_NEGATIVE)
        out[saturated] = np.exp(_log_psi_block(logits, gamma, 1.0, axis=1))
    if not saturated.all():
        out[~saturated] = _psi_block(by_row[~saturated], gamma, axis=1)
    return out.T if axis == 0 else out


def _log_psi_block(logits: np.ndarray, gamma: float, temperature: float, axis: int) -> np.ndarray:
    """Return log Psi^gamma(softmax(logits / temperature)) along `axis`; `logits` is consumed."""
    top_logit = logits.max(axis=axis, keepdims=True)
    tops = _TopEntries(logits, top_logit, axis)
    with np.errstate(over="ignore", under="ignore"):
        gaps = np.subtract(logits, top_logit, out=logits)
        gaps /= temperature
        np.maximum(gaps, MOST_NEGATIVE, out=gaps)
        ratios = _log_ratios_to_top(gaps, tops, gamma, axis) if gamma else gaps
        np.clip(ratios, MOST_NEGATIVE, 0.0, out=ratios)
        weights = np.exp(ratios)
        tops.fill(weights, 0.0)
        log_share = np.log1p(weights.sum(axis=axis, keepdims=True) + (tops.count - 1.0))
        ratios -= log_share
        np.maximum(ratios, MOST_NEGATIVE, out=ratios)
    return tops.restore(ratios, -log_share)


def _log_ratios_to_top(gaps: np.ndarray, tops: "_TopEntries", gamma: float, axis: int) -> np.ndarray:
    """Return log h_i - log h_top from the logit gaps to the top class (anything at the top)."""
    odds = np.exp(gaps)
    tops.fill(odds, 0.0)
    rest = odds.sum(axis=axis, keepdims=True) + (tops.count - 1.0)
    log_rest, log_denominator = _log_rest_and_denominator(gaps, tops, rest, gamma, axis)
    # B_i = e_i (log(1 + R) - log e_i) / (1 + R - e_i); where e_i underflows, B_i is below rounding of 1
    ratios = np.subtract(np.log1p(rest), gaps)
    ratios *= odds
    ratios /= (1.0 + rest) - odds
    ratios *= gamma
    ratios += 1.0
    np.log(ratios, out=ratios)
    np.subtract(log_denominator, ratios, out=ratios)
    ratios += gaps
    direct = rest >= SMALLEST_DIRECT_SUM
    powers = np.negative(np.expm1(gaps, out=odds), out=odds)
    powers /= np.where(direct, rest, 1.0)
    np.log1p(powers, out=powers)
    if not direct.all():
        powers = np.where(direct, powers, -log_rest)
    powers *= gamma
    ratios -= powers
    return ratios


def _log_rest_and_denominator(
    gaps: np.ndarray, tops: "_TopEntries", rest: np.ndarray, gamma: float, axis: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return log R and log(1 + gamma B_top), also where R itself has underflowed."""
    tiny = rest < SMALLEST_DIRECT_SUM
    with np.errstate(divide="ignore"):
        log_denominator = np.log(denominator_top(rest, gamma))
    if not tiny.any():
        return rest, log_denominator
    hidden = gaps.copy()
    tops.fill(hidden, MOST_NEGATIVE)
    second = hidden.max(axis=axis, keepdims=True)
    log_rest = second + np.log(np.exp(hidden - second).sum(axis=axis, keepdims=True))
    if gamma == -1.0:
        log_denominator = np.where(tiny, log_rest - np.log(2.0), log_denominator)
    return log_rest, log_denominator


class _TopEntries:
    """Where the largest entries of each distribution are: one a distribution, more where they tie."""

    def __init__(self, values: np.ndarray, top_value: np.ndarray, axis: int):
        is_top = values == top_value
        self.positions = np.flatnonzero(is_top)
        self.lines = values.shape[1 - axis]
        self.axis = axis
        self.stride = values.shape[1]
        tied = len(self.positions) > self.lines
        self.count = is_top.sum(axis=axis, keepdims=True, dtype=np.float64) if tied else 1.0

    def fill(self, values: np.ndarray, value: float) -> None:
        """Set the top entries of `values`, C-contiguous, to one number."""
        values.reshape(-1)[self.positions] = value

    def restore(self, values: np.ndarray, top_value: np.ndarray) -> np.ndarray:
        """Return `values` with `top_value` at the top entries and less than it everywhere else.

        Rounding can lift an entry from just below the top to it; one step of the last place keeps the order.
        """
        if (values >= top_value).any():
            np.minimum(values, np.nextafter(top_value, -np.inf), out=values)
        line = self.positions % self.stride if self.axis == 0 else self.positions // self.stride
        values.reshape(-1)[self.positions] = top_value.reshape(-1)[line]
        return values


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
