"""Calibrators ranked over independent blocks: average ranks and a critical difference (Demsar 2006)."""

# scipy.stats is imported where it is used: it takes a second, and few products need it.
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ALPHA = 0.05


@dataclass(frozen=True)
class FriedmanTest:
    """Friedman's chi-square and the less conservative F of Iman and Davenport, with their p-values."""

    chi_square: float
    chi_square_p: float
    f_statistic: float
    f_p: float


@dataclass(frozen=True)
class Ranking:
    """What a critical-difference diagram shows, methods from best to worst average rank."""

    methods: tuple[str, ...]
    average_ranks: tuple[float, ...]
    blocks: int
    critical_difference: float
    alpha: float
    cliques: tuple[tuple[str, ...], ...]  # maximal sets of neighbours that Nemenyi's test does not separate
    friedman: FriedmanTest


def average_ranks(scores: np.ndarray) -> np.ndarray:
    """Return each method's mean rank, float (k,), over the blocks of scores float (n, k); 1 is the lowest."""
    from scipy import stats  # noqa: PLC0415

    return stats.rankdata(scores, axis=1).mean(axis=0)


def friedman(scores: np.ndarray) -> FriedmanTest:
    """Return Friedman's test that all k >= 3 methods rank alike over n >= 2 blocks, scores float (n, k)."""
    from scipy import stats  # noqa: PLC0415

    blocks, methods = scores.shape
    if np.all(scores == scores[:, :1]):
        return FriedmanTest(0.0, 1.0, 0.0, 1.0)
    chi_square, chi_square_p = stats.friedmanchisquare(*scores.T)
    spare = blocks * (methods - 1) - chi_square
    # All blocks in full agreement leave nothing for the denominator (up to rounding).
    f_statistic = (blocks - 1) * chi_square / spare if spare > 1e-9 else math.inf
    f_p = stats.f.sf(f_statistic, methods - 1, (methods - 1) * (blocks - 1))
    return FriedmanTest(float(chi_square), float(chi_square_p), float(f_statistic), float(f_p))


def nemenyi_critical_difference(methods: int, blocks: int, alpha: float = ALPHA) -> float:
    """Return the least significant difference of average ranks by Nemenyi's test (Demsar 2006, 3.2.2).

    Its quantile, Demsar's Table 5(a), is that of the studentised range over the square root of 2.
    """
    from scipy import stats  # noqa: PLC0415

    quantile = float(stats.studentized_range.ppf(1 - alpha, methods, np.inf)) / math.sqrt(2)
    return quantile * math.sqrt(methods * (methods + 1) / (6 * blocks))


def cliques(ranks: Sequence[float], critical_difference: float) -> list[tuple[int, ...]]:
    """Return the maximal groups of positions in ascending `ranks` that span less than the difference."""
    groups, reached = [], 0
    for start, rank in enumerate(ranks):
        end = max(index for index, other in enumerate(ranks) if other - rank < critical_difference)
        if end > start and end > reached:
            groups.append(tuple(range(start, end + 1)))
            reached = end
    return groups


def rank_methods(scores: np.ndarray, methods: Sequence[str], alpha: float = ALPHA) -> Ranking:
    """Return the ranking of k >= 3 named methods over n >= 2 blocks, scores float (n, k), lower better.

    Demsar's tests take the blocks as independent, as datasets are and networks of one dataset are not.
    """
    ranks = average_ranks(scores)
    order = np.argsort(ranks, kind="stable")
    names = tuple(methods[index] for index in order)
    sorted_ranks = tuple(float(ranks[index]) for index in order)
    difference = nemenyi_critical_difference(len(names), len(scores), alpha)
    groups = tuple(tuple(names[i] for i in group) for group in cliques(sorted_ranks, difference))
    return Ranking(names, sorted_ranks, len(scores), difference, alpha, groups, friedman(scores))
