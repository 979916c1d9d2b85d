"""The calibration map of focal loss, Psi^gamma, its logarithm, its inverse and its binary form in logits.

C21 Eq. (10), (12), (13) = K24 Eq. (1): with `phi(v) = (1-v)^gamma - gamma (1-v)^(gamma-1) v log v`, `h(v) =
v / phi(v)`, `Psi(v)_i = h(v_i) / sum_j h(v_j)`. It turns the minimiser of focal loss back into the class
posterior.

Numerical form. `top` is the most probable class, `e_i = v_i / v_top`, `R = sum of e_i over i != top`,
`B(v) = -v log v / (1-v)` (which lies in [0, 1] and grows with v). Then `phi = (1-v)^gamma (1 + gamma B)` and

    log h_i - log h_top = log e_i - gamma log1p((1 - e_i) / R) - log((1 + gamma B_i) / (1 + gamma B_top))

with `B_top = log1p(R) / R`. Nothing here is a difference of nearly equal numbers: 1 - v_top, which a
saturated softmax rounds to 0, only enters as R, the sum over the *other* classes. Domain: gamma >= -1 (below
that, phi is negative near v = 1), any finite logits, at least 2 classes.

Blocks are stored classes first, (k, rows), for few classes, where NumPy reduces along rows slowly (this is 3
times as fast for 2 classes and 1.5 times for 10), and rows first for many classes, where its pairwise
summation matters.
"""

import functools
import math
from typing import Any

import numpy as np

from focalcal.common.arrays import finite_array, matrix
from focalcal.theory.arguments import checked_above, checked_gamma, checked_probabilities
from focalcal.theory.inverse import log_psi_inverse, psi_inverse
from focalcal.theory.top_class import MOST_NEGATIVE, SMALLEST_DIRECT_SUM, denominator_top, row_blocks

__all__ = ["binary_logit_map", "log_psi", "log_psi_inverse", "psi", "psi_inverse"]

MOST_CLASSES_FIRST = 64
"""Up to this many classes a block is transposed, so that reductions run along contiguous rows."""
TAYLOR_RADIUS = 0.5
TAYLOR_DEGREE = 24
"""Binary logits below the radius use a Taylor polynomial of this degree; its remainder is (0.5 / pi)^25."""


def psi(probs: Any, gamma: float) -> np.ndarray:
    """Return Psi^gamma of each row of `probs`, float64 (n, k), rows summing to 1 (C21 Eq. (12), K24 Eq. (1)).

    gamma = 0 is the identity, a one-hot row maps to itself, and the argmax of a row is preserved.

    Parameters
    ----------
    probs : array (n, k)
        Non-negative, rows summing to 1 within 1e-5; they are renormalised.
    gamma : float
        -1 or more.

    Returns
    -------
    array (n, k)
        Probabilities, float64.

    Examples
    --------
    >>> psi([[0.6, 0.4]], 1.0).round(4)
    array([[0.6724, 0.3276]])
    """
    probs = checked_probabilities("probs", probs)
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(probs), MOST_NEGATIVE)
    return np.exp(log_psi(logs, gamma))


def log_psi(logits: Any, gamma: float, temperature: float = 1.0) -> np.ndarray:
    """Return log Psi^gamma(softmax(logits / temperature)), float64 (n, k), finite for finite logits.

    The absolute error is a few roundings of (|gamma| + 1) * (range of the row) / temperature. Values are
    clipped at the most negative float64.

    Parameters
    ----------
    logits : array (n, k)
        Finite.
    gamma : float
        -1 or more.
    temperature : float
        Above 0.

    Returns
    -------
    array (n, k)
        Log-probabilities, float64.

    Examples
    --------
    >>> log_psi([[1000.0, 0.0]], 1.0)[0, 1].round(4)  # -2000 + log 2; the softmax underflows
    np.float64(-1999.3069)
    """
    gamma = checked_gamma(gamma)
    temperature = checked_above("temperature", temperature)
    logits = np.ascontiguousarray(matrix("logits", logits))
    out = np.empty_like(logits)
    for block in row_blocks(*logits.shape):
        np.copyto(out[block], _log_psi_block(_Lines(logits[block]), gamma, temperature))
    return out


def binary_logit_map(s: Any, gamma: float) -> np.ndarray:
    """Return logit of Psi^gamma at the binary logit `s`, float64 of the shape of `s`, to relative rounding.

    K24 Sec. 3.2: `(gamma + 1) s - log f(s)`, `f(s) = (1 + gamma a(s)) / (1 + gamma a(-s))`,
    `a(s) = e^s log(1 + e^-s)`; an odd function of s.

    Parameters
    ----------
    s : array
        Finite binary logits, of any shape.
    gamma : float
        -1 or more.

    Returns
    -------
    array
        Binary logits, float64, of the shape of `s`.

    Examples
    --------
    >>> binary_logit_map([0.0, 1.0], 2.0).round(4)
    array([0.    , 2.6817])
    """
    gamma = checked_gamma(gamma)
    s = finite_array("s", s)
    size = np.abs(s)
    with np.errstate(over="ignore", under="ignore"):
        mapped = (gamma + 1.0) * size - _log_asymmetry(size, gamma)
    return np.copysign(np.minimum(mapped, -MOST_NEGATIVE), s)


class _Lines:
    """A block of rows (n, k) laid out for fast sums over classes, with the (first) top entry of each row.

    `values` is a copy, (k, n) for few classes, (n, k) for many; `axis` is its class axis; `top` holds the top
    entries, shaped to broadcast against `values`; `positions` are their indices in the flat `values`, and
    `of_row` their rows.
    """

    def __init__(self, block: np.ndarray):
        rows, classes = block.shape
        self.block = block
        self.axis = 0 if classes <= MOST_CLASSES_FIRST else 1
        self.values = block.T.copy(order="C") if self.axis == 0 else block.copy(order="C")
        self.top = self.values.max(axis=self.axis, keepdims=True)
        self.positions = np.flatnonzero(self.values == self.top)
        self.of_row = self.positions % rows if self.axis == 0 else self.positions // classes
        if len(self.positions) != rows:  # ties
            best, self.of_row = block.argmax(axis=1), np.arange(rows)
            self.positions = best * rows + self.of_row if self.axis == 0 else self.of_row * classes + best
            self.top = np.expand_dims(block[self.of_row, best], self.axis)

    def sum(self, values: np.ndarray) -> np.ndarray:
        """Return the sums over classes, shaped to broadcast."""
        return values.sum(axis=self.axis, keepdims=True)

    def fill_top(self, values: np.ndarray, number: float) -> None:
        """Set the top entries of `values`, C-contiguous, to one number."""
        values.reshape(-1)[self.positions] = number

    def rows(self, values: np.ndarray) -> np.ndarray:
        """Return `values` as rows (n, k)."""
        return values.T if self.axis == 0 else values

    def finish(self, values: np.ndarray, top_value: np.ndarray) -> np.ndarray:
        """Return rows with `top_value` at the top entries and their ties, and less everywhere else.

        On input the top entries of `values` are lower than all others. Rounding can raise an entry just below
        the top to the top, or separate two that tie; one unit in the last place preserves the order.
        """
        if (values >= top_value - 1e-14 * (1.0 + np.abs(top_value))).any():
            np.minimum(values, np.nextafter(top_value, -np.inf), out=values)
            tied = (self.block == self.rows(self.top)).T if self.axis == 0 else self.block == self.top
            np.copyto(values, np.broadcast_to(top_value, values.shape), where=tied)
        values.reshape(-1)[self.positions] = top_value.reshape(-1)[self.of_row]
        return self.rows(values)


def _log_psi_block(lines: _Lines, gamma: float, temperature: float) -> np.ndarray:
    """Return log Psi^gamma(softmax(logits / temperature)) of a block of rows; `lines.values` is consumed."""
    with np.errstate(over="ignore", under="ignore"):
        gaps = np.subtract(lines.values, lines.top, out=lines.values)
        gaps /= temperature
        np.maximum(gaps, MOST_NEGATIVE, out=gaps)
        ratios = _log_ratios_to_top(lines, gaps, gamma) if gamma else gaps
        np.clip(ratios, MOST_NEGATIVE, 0.0, out=ratios)
        weights = np.exp(ratios)
        lines.fill_top(weights, 0.0)
        log_share = np.log1p(lines.sum(weights))
        ratios -= log_share
        np.maximum(ratios, MOST_NEGATIVE, out=ratios)
    lines.fill_top(ratios, -np.inf)
    return lines.finish(ratios, -log_share)


def _log_ratios_to_top(lines: _Lines, gaps: np.ndarray, gamma: float) -> np.ndarray:
    """Return log h_i - log h_top from the logit gaps to the top class (arbitrary at the top)."""
    odds = np.exp(gaps)
    lines.fill_top(odds, 0.0)
    rest = lines.sum(odds)
    log_rest, log_denominator = _log_rest_and_denominator(lines, gaps, rest, gamma)
    # B_i = e_i (log(1 + R) - log e_i) / (1 + R - e_i); where e_i underflows, B_i is negligible against 1
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
    lines: _Lines, gaps: np.ndarray, rest: np.ndarray, gamma: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return log R and log(1 + gamma B_top), also where R itself has underflowed."""
    tiny = rest < SMALLEST_DIRECT_SUM
    with np.errstate(divide="ignore"):
        log_denominator = np.log(denominator_top(rest, gamma))
    if not tiny.any():
        return rest, log_denominator
    hidden = gaps.copy()
    lines.fill_top(hidden, MOST_NEGATIVE)
    second = hidden.max(axis=lines.axis, keepdims=True)
    log_rest = second + np.log(lines.sum(np.exp(hidden - second)))
    if gamma == -1.0:
        log_denominator = np.where(tiny, log_rest - np.log(2.0), log_denominator)
    return log_rest, log_denominator


def _log_asymmetry(size: np.ndarray, gamma: float) -> np.ndarray:
    """Return log f(s) of K24 Sec. 3.2 for s = `size` >= 0, to relative rounding even as s tends to 0."""
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
