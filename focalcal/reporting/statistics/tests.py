"""Paired comparisons of calibration methods, and the ranking of many: intervals, tests and what they can say.

Scores are losses throughout: lower is better, and a difference is `first - second`, so that a negative one
speaks for `first`. Every random step is seeded; the same arguments give the same result.
"""

# scipy.stats is imported where it is used: it takes a second, and the many small jobs do not need it.
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from focalcal.common.intervals import TAILS, Interval

ALPHA = 0.05
TIE = 1e-12
"""Scores that differ by no more than this, which is rounding, are tied."""
EXACT_WILCOXON_LIMIT = 60
"""Up to this many non-zero differences the signed-rank distribution is computed exactly, ties included."""
UNDECIDED, OPEN, LOWER, HIGHER = "too few runs", "no difference shown", "lower", "higher"
"""What a comparison can say about first against second."""


@dataclass(frozen=True)
class PairedComparison:
    """What the available runs say about `first` against `second` (differences are first - second)."""

    runs: int
    groups: int
    mean_difference: float
    interval: Interval | None  # None: some group has a single run, so its spread is unknown
    wins: int
    ties: int
    losses: int
    p_value: float
    adjusted_p: float | None = None
    reachable_p: float | None = None
    """The least p that runs which all agree could have had: after correction, if the others stay."""

    @property
    def smallest_p(self) -> float:
        """Return the least two-sided p that this many non-tied runs can reach, corrected where p is."""
        return smallest_p(self.wins + self.losses) if self.reachable_p is None else self.reachable_p

    @property
    def interval_has_zero(self) -> bool:
        """Return whether there is an interval and it contains zero."""
        return self.interval is not None and self.interval.contains(0.0)

    @property
    def verdict(self) -> str:
        """Return `too few runs`, `no difference shown`, `lower` or `higher` for first against second.

        `lower` and `higher` need p below 0.05 (the adjusted one where there is one), an interval without zero
        (where there is one), and a mean on the side of most runs: p speaks of ranks, which a few large
        differences can outweigh in the mean. `too few runs` where not even runs that all agree would suffice.
        """
        if self.smallest_p >= ALPHA:
            return UNDECIDED
        p_value = self.p_value if self.adjusted_p is None else self.adjusted_p
        if p_value >= ALPHA or self.interval_has_zero:
            return OPEN
        if self.mean_difference < 0 and self.wins > self.losses:
            return LOWER
        if self.mean_difference > 0 and self.losses > self.wins:
            return HIGHER
        return OPEN


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


def grouped_bootstrap(
    groups: Sequence[np.ndarray], *, resamples: int = 10_000, seed: int = 0
) -> Interval | None:
    """Return the percentile interval of the mean of group means when runs are resampled within their group.

    A group holds the differences of one setting (dataset, model, loss), float (n,). The settings are kept
    fixed, so the interval speaks of new seeds in the same settings. None where a group has a single run. The
    interval of a single group of n runs stays between its extreme runs, so it covers at most 1 - 2^(1-n) of
    the time: below 6 runs, less than 95 %.
    """
    if any(len(group) < 2 for group in groups):
        return None
    rng = np.random.default_rng(seed)
    means = np.zeros(resamples)
    for group in groups:
        means += rng.choice(group, size=(resamples, len(group))).mean(axis=1)
    low, high = np.quantile(means / len(groups), TAILS)
    return Interval(float(low), float(high))


def compare_runs(
    first: np.ndarray, second: np.ndarray, groups: Sequence[object] | None = None
) -> PairedComparison:
    """Return the paired comparison of two methods' scores over the same runs, both float (n,).

    `groups` names the setting of each run, by default one for all. The mean difference is the mean of group
    means, as in `grouped_bootstrap`. Ties are dropped from the signed-rank test, as Wilcoxon did zeros.
    """
    difference = np.subtract(first, second)
    difference[np.abs(difference) <= TIE] = 0.0
    members: dict[object, list[float]] = {}
    for group, value in zip(groups or [None] * len(difference), difference, strict=True):
        members.setdefault(group, []).append(value)
    settings = [np.array(values) for values in members.values()]
    return PairedComparison(
        runs=len(difference),
        groups=len(settings),
        mean_difference=float(np.mean([values.mean() for values in settings])),
        interval=grouped_bootstrap(settings),
        wins=int(np.sum(difference < 0)),
        ties=int(np.sum(difference == 0)),
        losses=int(np.sum(difference > 0)),
        p_value=wilcoxon_p(difference),
    )


def wilcoxon_p(differences: np.ndarray) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test of differences float (n,) against zero.

    Zeros are dropped and tied magnitudes share their mean rank. Exact (the distribution over all 2^n signs of
    the observed ranks, which SciPy has only without ties) up to EXACT_WILCOXON_LIMIT differences, the normal
    approximation beyond. 1 if none is left.
    """
    from scipy import stats  # noqa: PLC0415

    differences = differences[differences != 0]
    if not len(differences):
        return 1.0
    if len(differences) > EXACT_WILCOXON_LIMIT:
        return float(stats.wilcoxon(differences, method="asymptotic").pvalue)
    # Mean ranks are multiples of one half, so twice a rank is an integer and the sums can be counted.
    doubled = np.rint(2 * stats.rankdata(np.abs(differences))).astype(int)
    probabilities = np.zeros(doubled.sum() + 1)
    probabilities[0] = 1.0
    for rank in doubled:
        probabilities = (probabilities + np.roll(probabilities, rank)) / 2
    positive = int(doubled[differences > 0].sum())
    smaller = min(positive, int(doubled.sum()) - positive)
    return float(min(1.0, 2 * probabilities[: smaller + 1].sum()))


def normal_p(z: float) -> float:
    """Return the two-sided p-value of a standard normal z."""
    return math.erfc(abs(z) / math.sqrt(2))


def student_interval(values: np.ndarray) -> Interval | None:
    """Return Student's t interval of the mean of values float (n,); None for a single one."""
    from scipy import stats  # noqa: PLC0415

    if len(values) < 2:
        return None
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    half = float(stats.t.ppf(TAILS[1], len(values) - 1)) * error
    return Interval(float(np.mean(values)) - half, float(np.mean(values)) + half)


def smallest_p(runs: int) -> float:
    """Return the least two-sided p a sign-flip test can give with `runs` non-tied pairs: 2^(1 - runs)."""
    return min(1.0, 2.0 ** (1 - runs))


def holm(p_values: Sequence[float]) -> np.ndarray:
    """Return Holm's step-down adjusted p-values, float (m,), in the order given."""
    given = np.asarray(p_values, dtype=float)
    order = np.argsort(given, kind="stable")
    multiplied = given[order] * np.arange(len(given), 0, -1)
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(multiplied))
    return adjusted


def adjust(comparisons: Sequence[PairedComparison]) -> list[PairedComparison]:
    """Return the comparisons with `adjusted_p` and `reachable_p` by Holm's correction over all of them."""
    p_values = [comparison.p_value for comparison in comparisons]
    return [
        replace(
            comparison,
            adjusted_p=float(adjusted),
            reachable_p=float(
                holm([*p_values[:index], comparison.smallest_p, *p_values[index + 1 :]])[index]
            ),
        )
        for index, (comparison, adjusted) in enumerate(zip(comparisons, holm(p_values), strict=True))
    ]


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

    Demsar's tests take the blocks as independent; seeds of one dataset are not quite, which favours finding a
    difference.
    """
    ranks = average_ranks(scores)
    order = np.argsort(ranks, kind="stable")
    names = tuple(methods[index] for index in order)
    sorted_ranks = tuple(float(ranks[index]) for index in order)
    difference = nemenyi_critical_difference(len(names), len(scores), alpha)
    groups = tuple(tuple(names[i] for i in group) for group in cliques(sorted_ranks, difference))
    return Ranking(names, sorted_ranks, len(scores), difference, alpha, groups, friedman(scores))
