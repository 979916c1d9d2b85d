"""Paired comparisons of calibration methods, and the ranking of many: intervals, tests and what they can say.

Scores are losses throughout: lower is better, and a difference is `first - second`, so that a negative one
speaks for `first`. Every random step takes a seed; the same arguments give the same result.
"""

# scipy.stats is imported where it is used: it takes a second, and the many small jobs do not need it.
import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

# Up to this many non-zero differences the signed-rank distribution is computed exactly, ties included.
EXACT_WILCOXON_LIMIT = 60


@dataclasses.dataclass(frozen=True)
class Interval:
    """A two-sided interval at level `confidence`."""

    low: float
    high: float
    confidence: float = 0.95

    def contains(self, value: float) -> bool:
        """Return whether `value` lies in the closed interval."""
        return self.low <= value <= self.high


@dataclasses.dataclass(frozen=True)
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
    smallest_p: float  # the least two-sided p that this many non-tied runs can reach
    adjusted_p: float | None = None


@dataclasses.dataclass(frozen=True)
class SampleComparison:
    """A metric of two predictors on one test set: values, difference, interval over test samples."""

    first: float
    second: float
    difference: float
    interval: Interval
    samples: int


@dataclasses.dataclass(frozen=True)
class FriedmanTest:
    """Friedman's chi-square and the less conservative F of Iman and Davenport, with their p-values."""

    chi_square: float
    chi_square_p: float
    f_statistic: float
    f_p: float


@dataclasses.dataclass(frozen=True)
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
    differences: np.ndarray,
    groups: Sequence[object] | None = None,
    *,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval | None:
    """Return the percentile interval of the mean of group means when runs are resampled within their group.

    `differences` is float (n,); `groups` names the setting of each run (dataset, model, loss), by default one
    for all. The settings are kept fixed, so the interval speaks of new seeds in the same settings. None where
    a group has a single run. The interval of a single group of n runs stays between its extreme runs, so it
    covers at most 1 - 2^(1-n) of the time: below 6 runs, less than 95 %.
    """
    differences = _finite_vector("differences", differences)
    _check_bootstrap(confidence, resamples)
    blocks = _blocks(differences, groups)
    if any(len(block) < 2 for block in blocks):
        return None
    rng = np.random.default_rng(seed)
    means = np.zeros(resamples)
    for block in blocks:
        means += rng.choice(block, size=(resamples, len(block))).mean(axis=1)
    low, high = np.quantile(means / len(blocks), _tails(confidence))
    return Interval(float(low), float(high), confidence)


def compare_runs(
    first: np.ndarray,
    second: np.ndarray,
    groups: Sequence[object] | None = None,
    *,
    tie_tolerance: float = 1e-12,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> PairedComparison:
    """Return the paired comparison of two methods' scores over the same runs, both float (n,).

    The mean difference is the mean of group means, as in `grouped_bootstrap`. A difference of at most
    `tie_tolerance` (by default only rounding) is a tie: the signed-rank test drops it, as Wilcoxon did zeros.
    """
    first, second = _finite_vector("first", first), _finite_vector("second", second)
    if len(first) != len(second):
        raise ValueError(f"first and second must pair run by run, not be {len(first)} and {len(second)} long")
    difference = first - second
    difference[np.abs(difference) <= tie_tolerance] = 0.0
    blocks = _blocks(difference, groups)
    return PairedComparison(
        runs=len(difference),
        groups=len(blocks),
        mean_difference=float(np.mean([block.mean() for block in blocks])),
        interval=grouped_bootstrap(difference, groups, confidence=confidence, resamples=resamples, seed=seed),
        wins=int(np.sum(difference < 0)),
        ties=int(np.sum(difference == 0)),
        losses=int(np.sum(difference > 0)),
        p_value=wilcoxon_p(difference),
        smallest_p=smallest_p(int(np.count_nonzero(difference))),
    )


def compare_samples(
    metric: Callable[..., float],
    first: Sequence[np.ndarray],
    second: Sequence[np.ndarray],
    *,
    kind: str = "basic",
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> SampleComparison:
    """Return metric(*first) - metric(*second) with a bootstrap interval over the test samples both share.

    `first` and `second` hold the arrays the metric takes (say probabilities (n, k) and labels (n,)), samples
    along the first axis. Each resample draws the same rows for both and recomputes the metric. `kind` is
    `basic` (2 d - quantiles) or `percentile`. Binned calibration errors of a finite sample are biased
    upwards, most for the better calibrated predictor, and each resample adds that bias again: the percentile
    interval then misses the true difference, while the basic one takes the bias off. Where one predictor is
    almost perfectly calibrated even the basic interval covers less often than it says.
    """
    _check_bootstrap(confidence, resamples)
    if kind not in {"basic", "percentile"}:
        raise ValueError(f"kind must be basic or percentile, not {kind!r}")
    first, second = [np.asarray(array) for array in first], [np.asarray(array) for array in second]
    lengths = sorted({len(array) for array in [*first, *second]})
    if len(lengths) != 1 or lengths[0] < 2:
        raise ValueError(f"all arrays must share one number of samples, at least 2, not {lengths}")
    samples = lengths[0]
    values = float(metric(*first)), float(metric(*second))
    rng = np.random.default_rng(seed)
    draws = np.empty(resamples)
    for index in range(resamples):
        rows = rng.integers(samples, size=samples)
        draws[index] = metric(*(a[rows] for a in first)) - metric(*(a[rows] for a in second))
    difference = values[0] - values[1]
    low, high = (float(bound) for bound in np.quantile(draws, _tails(confidence)))
    if kind == "basic":
        low, high = 2 * difference - high, 2 * difference - low
    return SampleComparison(*values, difference, Interval(low, high, confidence), samples)


def wilcoxon_p(differences: np.ndarray) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test of differences float (n,) against zero.

    Zeros are dropped and tied magnitudes share their mean rank. Exact (the distribution over all 2^n signs of
    the observed ranks) up to EXACT_WILCOXON_LIMIT differences, the normal approximation beyond. 1 if none is
    left.
    """
    from scipy import stats  # noqa: PLC0415

    differences = _finite_vector("differences", differences)
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
        shifted = np.zeros_like(probabilities)
        shifted[rank:] = probabilities[: len(probabilities) - rank]
        probabilities = (probabilities + shifted) / 2
    positive = int(doubled[differences > 0].sum())
    smaller = min(positive, int(doubled.sum()) - positive)
    return float(min(1.0, 2 * probabilities[: smaller + 1].sum()))


def smallest_p(runs: int) -> float:
    """Return the least two-sided p a sign-flip test can give with `runs` non-tied pairs: 2^(1 - runs)."""
    return min(1.0, 2.0 ** (1 - runs))


def holm(p_values: Sequence[float]) -> np.ndarray:
    """Return Holm's step-down adjusted p-values, float (m,), in the order given."""
    p_values = np.asarray(p_values, dtype=float)
    if p_values.ndim != 1 or not np.all((p_values >= 0) & (p_values <= 1)):
        raise ValueError(f"p_values must be a list of numbers in [0, 1], not {p_values.tolist()}")
    order = np.argsort(p_values, kind="stable")
    multiplied = p_values[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(multiplied))
    return adjusted


def adjust(comparisons: Sequence[PairedComparison]) -> list[PairedComparison]:
    """Return the comparisons with `adjusted_p` set by Holm's correction over all of them."""
    adjusted = holm([comparison.p_value for comparison in comparisons])
    return [
        dataclasses.replace(comparison, adjusted_p=float(p_value))
        for comparison, p_value in zip(comparisons, adjusted, strict=True)
    ]


def average_ranks(scores: np.ndarray) -> np.ndarray:
    """Return each method's mean rank, float (k,), over the blocks of scores float (n, k); 1 is the lowest."""
    from scipy import stats  # noqa: PLC0415

    return stats.rankdata(_score_matrix(scores), axis=1).mean(axis=0)


def friedman(scores: np.ndarray) -> FriedmanTest:
    """Return Friedman's test that all k methods rank alike over n blocks, scores float (n, k), k >= 3."""
    from scipy import stats  # noqa: PLC0415

    scores = _score_matrix(scores)
    blocks, methods = scores.shape
    if methods < 3 or blocks < 2:
        raise ValueError(f"scores must have at least 2 blocks and 3 methods, not {blocks} and {methods}")
    if np.all(scores == scores[:, :1]):
        return FriedmanTest(0.0, 1.0, 0.0, 1.0)
    chi_square, chi_square_p = stats.friedmanchisquare(*scores.T)
    spare = blocks * (methods - 1) - chi_square
    # All blocks in full agreement leave nothing for the denominator (up to rounding).
    f_statistic = (blocks - 1) * chi_square / spare if spare > 1e-9 else math.inf
    f_p = stats.f.sf(f_statistic, methods - 1, (methods - 1) * (blocks - 1))
    return FriedmanTest(float(chi_square), float(chi_square_p), float(f_statistic), float(f_p))


def nemenyi_critical_difference(methods: int, blocks: int, alpha: float = 0.05) -> float:
    """Return the least significant difference of average ranks by Nemenyi's test (Demsar 2006, 3.2.2)."""
    if methods < 2 or blocks < 1:
        raise ValueError(f"methods must be at least 2 and blocks at least 1, not {methods} and {blocks}")
    return nemenyi_quantile(methods, alpha) * math.sqrt(methods * (methods + 1) / (6 * blocks))


def nemenyi_quantile(methods: int, alpha: float = 0.05) -> float:
    """Return q_alpha of Demsar 2006 Table 5(a): the studentised range quantile over the square root of 2."""
    from scipy import stats  # noqa: PLC0415

    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, not {alpha}")
    return float(stats.studentized_range.ppf(1 - alpha, methods, np.inf)) / math.sqrt(2)


def cliques(ranks: Sequence[float], critical_difference: float) -> list[tuple[int, ...]]:
    """Return the maximal groups of positions in ascending `ranks` that span less than the difference."""
    ranks = list(ranks)
    if ranks != sorted(ranks):
        raise ValueError(f"ranks must ascend, not be {ranks}")
    groups, reached = [], 0
    for start, rank in enumerate(ranks):
        end = start
        while end + 1 < len(ranks) and ranks[end + 1] - rank < critical_difference:
            end += 1
        if end > start and end > reached:
            groups.append(tuple(range(start, end + 1)))
            reached = end
    return groups


def rank_methods(scores: np.ndarray, methods: Sequence[str], alpha: float = 0.05) -> Ranking:
    """Return the ranking of k >= 3 named methods over n blocks, scores float (n, k), lower better.

    Demsar's tests take the blocks as independent; seeds of one dataset are not quite, which favours finding a
    difference.
    """
    scores = _score_matrix(scores)
    if len(methods) != scores.shape[1]:
        raise ValueError(f"methods must name the {scores.shape[1]} columns of scores, not {len(methods)}")
    ranks = average_ranks(scores)
    order = np.argsort(ranks, kind="stable")
    names = tuple(methods[index] for index in order)
    sorted_ranks = tuple(float(ranks[index]) for index in order)
    difference = nemenyi_critical_difference(len(names), len(scores), alpha)
    groups = tuple(tuple(names[i] for i in group) for group in cliques(sorted_ranks, difference))
    return Ranking(names, sorted_ranks, len(scores), difference, alpha, groups, friedman(scores))


def _score_matrix(scores: np.ndarray) -> np.ndarray:
    scores = np.asarray(scores, dtype=float)
    if scores.ndim != 2 or not scores.size or not np.all(np.isfinite(scores)):
        raise ValueError(f"scores must be a finite (blocks, methods) array, not one of shape {scores.shape}")
    return scores


def _finite_vector(name: str, values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or not len(values) or not np.all(np.isfinite(values)):
        raise ValueError(f"{name} must be a non-empty list of finite numbers, not {values.tolist()}")
    return values


def _blocks(differences: np.ndarray, groups: Sequence[object] | None) -> list[np.ndarray]:
    """Return the differences of each group, groups in order of first appearance."""
    if groups is None:
        return [differences]
    if len(groups) != len(differences):
        raise ValueError(f"groups must name a setting for each of {len(differences)} runs, not {len(groups)}")
    members: dict[object, list[float]] = {}
    for group, difference in zip(groups, differences, strict=True):
        members.setdefault(group, []).append(difference)
    return [np.array(values) for values in members.values()]


def _check_bootstrap(confidence: float, resamples: int) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, not {confidence}")
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, not {resamples}")


def _tails(confidence: float) -> tuple[float, float]:
    return (1 - confidence) / 2, (1 + confidence) / 2
