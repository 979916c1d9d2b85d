"""The temperature whose softmax is closest to Psi^gamma in maximum norm (K24 Sec. 3.3, Fig. 6).

K24 scans T, gamma and every logit on grids. Here the largest difference for one T is found by ascent from
structured starting points, and T by an exchange (Remez) method: solve the minimax problem on finitely many
points, add the worst points for that solution, and repeat until no worse point is found.

Symmetry reduces the search. Both maps are invariant to a shift of the logits and commute with permutations,
so logits in a box of half width `max_logit` are described by their gaps to the largest, in [-2 max_logit, 0].
Given the top class, the other gaps solve one Lagrange equation with few roots, so the worst points have few
levels: `tops` classes at 0, some at -x, the rest at -y. The unit tests climb from points without that
structure and find nothing worse.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from focalcal.theory.arguments import checked_above, checked_classes
from focalcal.theory.psi import log_psi

MOST_CLASSES = 10
"""Up to so many classes, every family of points with three levels is tried; of more, those below."""
MOST_MATCHED = 1000
COUNTS = (1, 2, 10)
EXCHANGE_TOLERANCE = 1e-9
"""The exchange ends when no point is worse by more than this fraction."""
MOST_EXCHANGES = 30
STEPS_ALONG_FAMILY = 32
FIRST_STEP, FINAL_STEP = 0.1, 3e-6
"""Ascent ends when a step this long no longer helps; at a smooth maximum the error is of order 1e-11."""
WORTH_CLIMBING = 0.8
"""A family is climbed when its best starting point reaches this fraction of the largest difference known."""


def match_temperature(gamma: float, classes: int, max_logit: float = 5.0) -> tuple[float, float]:
    """Return (temperature, max_error): the temperature closest to Psi^gamma and the largest difference.

    The difference is the largest over classes and over logits in (-max_logit, max_logit)^classes of
    |Psi^gamma(softmax(s)) - softmax(s / T)|.

    Parameters
    ----------
    gamma : float
        Above -1.
    classes : int
        From 2 to 1,000. Above 10, the largest difference is searched among fewer points, which take seconds.
    max_logit : float
        Above 0.

    Returns
    -------
    temperature, max_error : float
        The best temperature and what it leaves.

    Examples
    --------
    >>> [round(value, 4) for value in match_temperature(1.0, 3)]
    [0.6578, 0.0349]
    """
    gamma = checked_above("gamma", gamma, -1.0)
    classes = checked_classes(classes, maximum=MOST_MATCHED)
    width = 2.0 * checked_above("max_logit", max_logit)
    starts = _Levels.on_grid(classes, width)
    points, target = starts.gaps, np.exp(log_psi(starts.gaps, gamma))
    grid, grid_target = points, target
    low, high = sorted((1.0, gamma + 1.0))
    inverse = _best_inverse_temperature(points, target, 0.7 * low, 1.1 * high)
    for _ in range(MOST_EXCHANGES):
        known = largest_difference(inverse, points, target)
        difference = signed_difference(inverse, grid, grid_target)
        worst, values = _climb(starts, difference, inverse, gamma, width)
        if values.max() <= known * (1.0 + EXCHANGE_TOLERANCE):
            return 1.0 / inverse, max(known, float(values.max()))
        points = np.concatenate([points, worst])
        target = np.concatenate([target, np.exp(log_psi(worst, gamma))])
        inverse = _best_inverse_temperature(points, target, 0.95 * inverse, 1.05 * inverse)
    raise ArithmeticError(
        f"no match after {MOST_EXCHANGES} exchanges at gamma = {gamma!r}, classes = {classes}"
    )


def linear_fit(gammas: Sequence[float], temperatures: Sequence[float]) -> tuple[float, float, float]:
    """Return (slope, intercept, largest residual) of the least-squares line of 1/T on gamma."""
    places = np.asarray(gammas, dtype=np.float64)
    inverse = 1.0 / np.asarray(temperatures, dtype=np.float64)
    slope, intercept = np.polyfit(places, inverse, 1)
    residual = inverse - (slope * places + intercept)
    return float(slope), float(intercept), float(np.abs(residual).max())


def largest_difference(inverse: float, gaps: np.ndarray, target: np.ndarray) -> float:
    """Return max |target - softmax(inverse * gaps)| over rows and classes; gaps and target (m, k)."""
    return float(np.abs(signed_difference(inverse, gaps, target)).max())


def signed_difference(inverse: float, gaps: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return target - softmax(inverse * gaps), (m, k); gaps are at most 0 and 0 at the top."""
    scaled = np.exp(inverse * gaps)
    scaled /= scaled.sum(axis=1, keepdims=True)
    return target - scaled


@dataclass(frozen=True)
class _Levels:
    """Points with three levels: (tops, middles) = family[r] classes at 0 and -x[r], the rest at -y[r]."""

    family: np.ndarray
    x: np.ndarray
    y: np.ndarray
    classes: int

    @classmethod
    def on_grid(cls, classes: int, width: float) -> "_Levels":
        """Return families with x on a grid that is denser near 0, and the rest at -width."""
        sizes = range(1, classes) if classes <= MOST_CLASSES else sorted({*COUNTS, classes - 1})
        counts = itertools.product(sizes, repeat=2)
        families = np.array([(tops, middles) for tops, middles in counts if tops + middles <= classes])
        depths = width * (np.arange(1, STEPS_ALONG_FAMILY + 1) / STEPS_ALONG_FAMILY) ** 2
        family = np.repeat(families, len(depths), axis=0)
        x = np.tile(depths, len(families))
        return cls(family, x, np.full_like(x, width), classes)

    @property
    def gaps(self) -> np.ndarray:
        """Return the gaps to the top class, (m, k)."""
        position = np.arange(self.classes)
        tops, middles = self.family[:, :1], self.family[:, 1:]
        below = np.where(position < tops + middles, -self.x[:, None], -self.y[:, None])
        return np.where(position < tops, 0.0, below)


def _best_inverse_temperature(points: np.ndarray, target: np.ndarray, low: float, high: float) -> float:
    """Return the 1/T in [low, high] that minimises the largest difference on `points`.

    A scan brackets it and the sign of the slope bisects the bracket: the maximum of several smooth curves
    has its minimum at a kink, where interpolating methods stall.
    """
    inverses = np.linspace(low, high, 41)
    best = int(np.argmin([largest_difference(inverse, points, target) for inverse in inverses]))
    low, high = inverses[max(best - 1, 0)], inverses[min(best + 1, len(inverses) - 1)]
    while high - low > 1e-13 * high:
        middle = 0.5 * (low + high)
        difference = signed_difference(middle, points, target)
        row, column = np.unravel_index(np.abs(difference).argmax(), difference.shape)
        scaled = target[row] - difference[row]
        growth = scaled[column] * (points[row, column] - scaled @ points[row])
        if difference[row, column] * growth > 0:
            low = middle
        else:
            high = middle
    return float(0.5 * (low + high))


def _climb(
    starts: _Levels, difference: np.ndarray, inverse: float, gamma: float, width: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return (gaps, differences) at the peaks reached from each family's best starts."""
    rows, columns, signs = _climbs(starts, difference)
    family, x, y = starts.family[rows], starts.x[rows], starts.y[rows]
    values = signs * difference[rows, columns]
    every = np.arange(len(rows))
    step = np.full(len(rows), FIRST_STEP)
    while (step > FINAL_STEP).any():
        new_x = np.stack([x + step, x - step, x, x, x + step, x - step])
        new_y = np.stack([y, y, y + step, y - step, y + step, y - step])
        new_x, new_y = np.clip(new_x, 0.0, width), np.clip(new_y, 0.0, width)
        moves = len(new_x)
        trials = _Levels(np.tile(family, (moves, 1)), new_x.ravel(), new_y.ravel(), starts.classes).gaps
        found = signed_difference(inverse, trials, np.exp(log_psi(trials, gamma)))
        scores = np.tile(signs, moves) * found[np.arange(len(trials)), np.tile(columns, moves)]
        scores = scores.reshape(moves, -1)
        best = scores.argmax(axis=0)
        better = scores[best, every] > values
        x, y = np.where(better, new_x[best, every], x), np.where(better, new_y[best, every], y)
        values = np.where(better, scores[best, every], values)
        step = np.where(better, step, step / 2)
    return _Levels(family, x, y, starts.classes).gaps, values


def _climbs(starts: _Levels, difference: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (row, column, sign) of the climbs: one per family, level and sign with a promising start."""
    tops, middles = starts.family[:, 0], starts.family[:, 1]
    columns = np.stack([np.zeros_like(tops), tops, np.minimum(tops + middles, starts.classes - 1)])
    levels = np.take_along_axis(difference, columns.T, axis=1).T
    signed = np.concatenate([levels, -levels]).reshape(6, -1, STEPS_ALONG_FAMILY)
    best = signed.argmax(axis=2)
    reached = signed.max(axis=2)
    chosen = np.argwhere(reached >= WORTH_CLIMBING * reached.max())
    rows = chosen[:, 1] * STEPS_ALONG_FAMILY + best[chosen[:, 0], chosen[:, 1]]
    signs = np.where(chosen[:, 0] < 3, 1.0, -1.0)
    return rows, columns[chosen[:, 0] % 3, rows], signs
