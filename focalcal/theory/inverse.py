"""The inverse of Psi^gamma: the probabilities that minimise focal loss for a given class posterior."""

from typing import Any

import numpy as np

from focalcal.common.arrays import matrix
from focalcal.theory.arguments import checked_gamma, checked_probabilities
from focalcal.theory.top_class import (
    MOST_NEGATIVE,
    SMALLEST_DIRECT_SUM,
    denominator_top,
    one_minus_top_term,
    row_blocks,
)

LOWEST_INVERTED_GAP = -1e300
MAXIMUM_STEPS = 200
STEP_TOLERANCE = 1e-13
"""Newton's method stops at steps this small (relative for values above 1); the error is then their square."""


def psi_inverse(eta: Any, gamma: float) -> np.ndarray:
    """Return the focal-risk minimiser of each posterior row of `eta`, float64 (n, k): Psi^gamma of it is eta.

    For gamma >= 0, h is increasing and the solution minimises the focal risk (C21 Sec. 4); for
    -1 <= gamma < 0 h is not monotone, but the solution is still unique on the simplex. Entries of `eta` that
    underflowed to 0 cannot be recovered; use logarithms and `log_psi_inverse` for them.

    Parameters
    ----------
    eta : array (n, k)
        Non-negative, rows summing to 1 within 1e-5.
    gamma : float
        -1 or more.

    Returns
    -------
    array (n, k)
        Probabilities, float64.

    Examples
    --------
    >>> from focalcal.theory.psi import psi, psi_inverse
    >>> psi(psi_inverse([[0.6, 0.4]], 1.0), 1.0).round(12)
    array([[0.6, 0.4]])
    """
    eta = checked_probabilities("eta", eta)
    with np.errstate(divide="ignore"):
        log_eta = np.maximum(np.log(eta), MOST_NEGATIVE)
    solution = np.exp(log_psi_inverse(log_eta, gamma))
    return np.where(eta == 0, 0.0, solution)


def log_psi_inverse(log_eta: Any, gamma: float) -> np.ndarray:
    """Return log q with log_psi(log q, gamma) = log_softmax(log_eta), float64 (n, k).

    `log_eta` is (n, k), finite, defined up to a constant per row; gaps are limited to 1e300; gamma >= -1.
    """
    gamma = checked_gamma(gamma)
    log_eta = np.ascontiguousarray(matrix("log_eta", log_eta))
    out = np.empty_like(log_eta)
    for block in row_blocks(*log_eta.shape):
        _invert_block(log_eta[block], gamma, out[block])
    return out


def _invert_block(log_eta: np.ndarray, gamma: float, out: np.ndarray) -> None:
    """Write log q with Psi^gamma(q) = softmax(log_eta) into `out`; both (n, k) float64.

    One unknown per row: x = log R, the log odds against the top class. Given x, every other class follows
    from h(q_i) = h(q_top) eta_i / eta_top. Their sum must be R / (1 + R); its excess decreases with x.
    """
    positions = np.arange(len(log_eta))
    top = log_eta.argmax(axis=1)
    with np.errstate(over="ignore", under="ignore"):
        gaps = np.maximum(log_eta - log_eta[positions, top][:, None], LOWEST_INVERTED_GAP)
        gaps[positions, top] = LOWEST_INVERTED_GAP
        low, high = _bracket(_logsumexp(gaps), log_eta.shape[1], gamma)
        x = np.clip(_logsumexp(gaps) / (1.0 + max(gamma, 0.0)), low, high)
        logs = np.full_like(gaps, LOWEST_INVERTED_GAP)
        for _ in range(MAXIMUM_STEPS):
            log_top_h, top_slope = _log_h_of_top(x, gamma)
            logs, slopes = _solve_others(log_top_h[:, None] + gaps, logs, gamma)
            log_sum = _logsumexp(logs)
            excess = log_sum - (x - np.log1p(np.exp(x)))
            low, high = np.where(excess > 0, x, low), np.where(excess > 0, high, x)
            shares = np.exp(logs - log_sum[:, None])
            shares[positions, top] = 0.0
            flatness = (shares / slopes).sum(axis=1) / shares.sum(axis=1)
            descent = flatness * top_slope - 1.0 / (1.0 + np.exp(x))
            previous, x = x, _safeguarded(x, x - excess / descent, low, high)
            if _settled(previous, x):
                break
        else:
            raise ArithmeticError(
                f"psi_inverse did not converge in {MAXIMUM_STEPS} steps at gamma = {gamma!r}"
            )
        log1p_rest = np.log1p(np.exp(x))
        np.subtract(logs, (log_sum - (x - log1p_rest))[:, None], out=out)
        np.maximum(out, MOST_NEGATIVE, out=out)
    out[positions, top] = -log1p_rest


def _bracket(log_sum: np.ndarray, classes: int, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds (n,) of log R, given the log of the sum of eta_i / eta_top over the other classes.

    From h(v) <= c v on v <= 1/2 and a lower bound of h(q_top) in r = 1 - q_top; log r <= log R <= log(k - 1).
    """
    if gamma >= 0:
        low = (log_sum - np.log1p(gamma)) / (1.0 + gamma) - np.log(2.0)
    else:
        room = 1.0 + gamma
        low = (log_sum + np.log(0.075)) / (1.0 + room)
        if room > 0:
            low = np.minimum(low, (log_sum + np.log(0.075 / room)) / room)
    high = np.full_like(low, np.log(classes - 1.0) + 1e-15)
    return np.maximum(np.minimum(low, high - 1e-15), MOST_NEGATIVE), high


def _log_h_of_top(log_rest: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Return log h(q_top) and its derivative in log R, (n,) each, for q_top = 1 / (1 + R)."""
    rest = np.exp(log_rest)
    denominator = denominator_top(rest, gamma)
    with np.errstate(divide="ignore"):
        log_denominator = np.log(denominator)
    if gamma == -1.0:
        log_denominator = np.where(rest < SMALLEST_DIRECT_SUM, log_rest - np.log(2.0), log_denominator)
    log1p_rest = np.log1p(rest)
    log_h = -log1p_rest - gamma * (log_rest - log1p_rest) - log_denominator
    term_minus_prob = rest / (1.0 + rest) - one_minus_top_term(rest)
    relative = np.divide(term_minus_prob, denominator, out=np.full_like(rest, 0.5), where=denominator > 0)
    if gamma == -1.0:
        relative = np.where(rest < SMALLEST_DIRECT_SUM, 1.0, relative)
    return log_h, (-rest - gamma) / (1.0 + rest) + gamma * relative


def _solve_others(targets: np.ndarray, start: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Return log v <= log(1/2) with log h(v) = min(target, log h(1/2)), and d log h / d log v there."""
    log_half = np.log(0.5)
    targets = np.minimum(targets, _log_h_of_other(log_half, gamma)[0])
    # on v <= 1/2: h(v) <= growth * v, and h(v) >= v / shrinkage
    log_growth = max(gamma * np.log(2.0), -np.log(1.0 - np.log(2.0)))
    log_shrinkage = np.log1p(gamma) if gamma > 1.0 else np.log(2.0)
    low = np.maximum(targets - log_growth, MOST_NEGATIVE)
    high = np.minimum(targets + log_shrinkage, log_half)
    logs = np.where((start > low) & (start < high), start, np.minimum(targets, high))
    for _ in range(MAXIMUM_STEPS):
        values, slopes = _log_h_of_other(logs, gamma)
        missing = targets - values
        low, high = np.where(missing > 0, logs, low), np.where(missing > 0, high, logs)
        previous, logs = logs, _safeguarded(logs, logs + missing / slopes, low, high)
        if _settled(previous, logs):
            return logs, slopes
    raise ArithmeticError(f"psi_inverse: the search for one class did not converge at gamma = {gamma!r}")


def _log_h_of_other(log_prob: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Return log h(v) and d log h / d log v for log v <= log(1/2), in the shape of `log_prob`."""
    prob = np.exp(log_prob)
    complement = 1.0 - prob
    term = -prob * log_prob / complement
    denominator = 1.0 + gamma * term
    log_h = log_prob - gamma * np.log1p(-prob) - np.log(denominator)
    slope = 1.0 + gamma * (prob - (term - prob) / denominator) / complement
    return log_h, slope


def _safeguarded(current: np.ndarray, step: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return `step` where it lies in the bracket (up to rounding), the bracket's midpoint elsewhere."""
    slack = STEP_TOLERANCE * np.maximum(1.0, np.abs(current))
    inside = (step >= low - slack) & (step <= high + slack)
    return np.where(inside, step, 0.5 * low + 0.5 * high)


def _settled(previous: np.ndarray, current: np.ndarray) -> bool:
    """Return whether no entry moved by more than the tolerance."""
    return bool((np.abs(current - previous) <= STEP_TOLERANCE * np.maximum(1.0, np.abs(current))).all())


def _logsumexp(values: np.ndarray) -> np.ndarray:
    """Return the log of the sum of the exponentials of each row, (n,)."""
    largest = values.max(axis=1)
    return largest + np.log(np.exp(values - largest[:, None]).sum(axis=1))
