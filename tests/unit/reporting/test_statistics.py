import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from focalcal.reporting.statistics import tests as statistics
from focalcal.reporting.tables.recovery import seed_intervals

# Demsar (2006), Table 5(a): critical values of the two-tailed Nemenyi test for 2 to 10 classifiers.
DEMSAR_Q05 = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]
DEMSAR_Q10 = [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920]
# Demsar (2006), Table 6: AUC of C4.5 with and without m and cf on 14 datasets.
DEMSAR_AUC = [
    [0.763, 0.768, 0.771, 0.798],
    [0.599, 0.591, 0.590, 0.569],
    [0.954, 0.971, 0.968, 0.967],
    [0.628, 0.661, 0.654, 0.657],
    [0.882, 0.888, 0.886, 0.898],
    [0.936, 0.931, 0.916, 0.931],
    [0.661, 0.668, 0.609, 0.685],
    [0.583, 0.583, 0.563, 0.625],
    [0.775, 0.838, 0.866, 0.875],
    [1.000, 1.000, 1.000, 1.000],
    [0.940, 0.962, 0.965, 0.962],
    [0.619, 0.666, 0.614, 0.669],
    [0.972, 0.981, 0.9751, 0.975],  # printed 0.975 twice, but ranked 2 and 3: unrounded values differed
    [0.957, 0.978, 0.946, 0.970],
]


class TestBootstrapOverRuns:
    def test_two_runs_span_the_interval(self):
        # The mean of two draws from {0, 1} is 0 or 1 with probability 1/4 each, beyond either tail.
        interval = statistics.grouped_bootstrap([np.array([0.0, 1.0])])
        assert (interval.low, interval.high) == (0.0, 1.0)

    def test_settings_are_kept_fixed(self):
        # Groups differ, runs within a group do not: nothing is uncertain.
        interval = statistics.grouped_bootstrap([np.zeros(2), np.ones(2)])
        assert (interval.low, interval.high) == (0.5, 0.5)

    def test_agrees_with_scipy(self):
        values = np.random.default_rng(1).normal(0.3, 1, 12)
        ours = statistics.grouped_bootstrap([values], resamples=100_000)
        theirs = stats.bootstrap(
            (values,), np.mean, method="percentile", n_resamples=100_000, rng=np.random.default_rng(2)
        ).confidence_interval
        assert ours.low == pytest.approx(theirs.low, abs=0.01)
        assert ours.high == pytest.approx(theirs.high, abs=0.01)

    def test_one_run_in_a_group_gives_no_interval(self):
        assert statistics.grouped_bootstrap([np.array([0.3])]) is None
        assert statistics.grouped_bootstrap([np.array([0.3, 0.1]), np.array([0.2])]) is None

    def test_is_deterministic_and_depends_on_the_seed(self):
        values = np.random.default_rng(4).normal(size=7)
        assert statistics.grouped_bootstrap([values]) == statistics.grouped_bootstrap([values])
        assert statistics.grouped_bootstrap([values]) != statistics.grouped_bootstrap([values], seed=1)


def test_an_interval_of_a_mean_is_that_of_students_t():
    values = [0.1, 0.4, 0.25, 0.3]
    low, high = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
    rows = [("a", value) for value in values] + [("b", 0.5)]
    found = seed_intervals(pd.DataFrame(rows, columns=["loss", "value"]), ["loss"])
    assert found["seeds"].tolist() == [4, 1]
    several, single = found.to_dict("records")
    assert several["mean"] - several["half_width"] == pytest.approx(low, rel=1e-12)
    assert several["mean"] + several["half_width"] == pytest.approx(high, rel=1e-12)
    assert single["mean"] == 0.5
    assert math.isnan(single["half_width"])


class TestCompareRuns:
    def test_by_hand(self):
        first = np.array([1.0, 2.0, 3.0, 4.0])
        second = np.array([1.5, 2.0, 2.0, 7.0])
        result = statistics.compare_runs(first, second)
        assert (result.runs, result.groups) == (4, 1)
        assert (result.wins, result.ties, result.losses) == (2, 1, 1)
        assert result.mean_difference == pytest.approx((-0.5 + 0 + 1 - 3) / 4)
        # Non-zero differences -0.5, 1, -3 have ranks 1, 2, 3; the positive sum 2 is reached by sums 0, 1, 2
        # of 8 sign patterns: p = 2 * 3 / 8.
        assert result.p_value == pytest.approx(0.75)
        assert result.smallest_p == 0.25
        assert result.adjusted_p is None

    def test_mean_of_group_means(self):
        result = statistics.compare_runs(np.array([1.0, 1, 1, 4, 4]), np.zeros(5), ["a", "a", "a", "b", "b"])
        assert result.mean_difference == 2.5
        assert result.groups == 2
        assert (result.interval.low, result.interval.high) == (2.5, 2.5)

    def test_rounding_is_a_tie(self):
        result = statistics.compare_runs(np.array([0.1 + 0.2, 1.0]), np.array([0.3, 1.0]))
        assert (result.wins, result.ties, result.losses) == (0, 2, 0)
        assert (result.p_value, result.smallest_p, result.mean_difference) == (1.0, 1.0, 0.0)


class TestWilcoxon:
    def test_all_agree(self):
        for runs in (1, 5, 6, 10):
            p_value = statistics.wilcoxon_p(np.arange(1.0, runs + 1))
            assert p_value == pytest.approx(statistics.smallest_p(runs)) == pytest.approx(2.0 ** (1 - runs))

    def test_five_runs_cannot_reach_5_percent_and_six_can(self):
        assert statistics.smallest_p(5) > 0.05 > statistics.smallest_p(6)

    @given(st.integers(2, 20), st.integers(0, 2**32 - 1))
    def test_agrees_with_scipy_without_ties(self, runs, seed):
        differences = np.random.default_rng(seed).normal(0.2, 1, runs)
        expected = stats.wilcoxon(differences, method="exact").pvalue
        assert statistics.wilcoxon_p(differences) == pytest.approx(expected, rel=1e-12)

    def test_agrees_with_scipys_full_permutation_with_ties_and_zeros(self):
        differences = np.array([1.0, -1, 2, 2, 2, 0, -3, 4, 1, 0])
        nonzero = differences[differences != 0]
        permutation = stats.PermutationMethod(n_resamples=np.inf)
        expected = stats.wilcoxon(nonzero, method=permutation).pvalue
        assert statistics.wilcoxon_p(differences) == pytest.approx(expected, rel=1e-12)

    def test_exact_and_approximate_meet(self):
        differences = np.random.default_rng(7).normal(0.15, 1, 61)
        approximate = statistics.wilcoxon_p(differences)
        assert approximate == pytest.approx(stats.wilcoxon(differences, method="asymptotic").pvalue)
        assert approximate == pytest.approx(stats.wilcoxon(differences, method="exact").pvalue, abs=0.005)

    def test_symmetry_and_nothing_left(self):
        differences = np.array([0.3, -0.1, 0.4, 0.25])
        assert statistics.wilcoxon_p(differences) == statistics.wilcoxon_p(-differences)
        assert statistics.wilcoxon_p(np.zeros(4)) == 1.0


class TestHolm:
    def test_by_hand(self):
        # Sorted .005, .01, .03, .04 times 4, 3, 2, 1 is .02, .03, .06, .04; the last may not fall below .06.
        assert statistics.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])

    def test_is_capped_and_empty(self):
        assert statistics.holm([0.9, 0.8]).tolist() == [1.0, 1.0]
        assert statistics.holm([]).tolist() == []

    def test_adjust_keeps_the_rest(self):
        first = statistics.compare_runs(np.arange(1.0, 9), np.zeros(8))
        second = statistics.compare_runs(np.array([1.0, -1, 2]), np.zeros(3))
        adjusted = statistics.adjust([first, second])
        assert [a.adjusted_p for a in adjusted] == pytest.approx([2 * first.p_value, second.p_value])
        assert replace(adjusted[0], adjusted_p=None, reachable_p=None) == first


class TestRanking:
    @pytest.mark.parametrize(("alpha", "table"), [(0.05, DEMSAR_Q05), (0.10, DEMSAR_Q10)])
    def test_quantiles_are_demsars(self, alpha, table):
        # With k (k + 1) / 6 blocks the critical difference is the quantile.
        ours = [
            statistics.nemenyi_critical_difference(methods, methods * (methods + 1) / 6, alpha)
            for methods in range(2, 11)
        ]
        assert ours == pytest.approx(table, abs=0.001)

    def test_demsars_example(self):
        scores = -np.array(DEMSAR_AUC)
        ranks = statistics.average_ranks(scores)
        assert ranks == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)
        uncorrected = 12 * 14 / (4 * 5) * (np.sum(ranks**2) - 4 * 5**2 / 4)
        assert uncorrected == pytest.approx(9.28, abs=0.005)
        result = statistics.friedman(scores)
        # scipy's statistic is corrected for ties, which Demsar's is not.
        assert result.chi_square == pytest.approx(stats.friedmanchisquare(*scores.T).statistic)
        assert result.chi_square > uncorrected
        assert statistics.nemenyi_critical_difference(4, 14, 0.05) == pytest.approx(1.25, abs=0.005)
        assert statistics.nemenyi_critical_difference(4, 14, 0.10) == pytest.approx(1.12, abs=0.005)
        ranking = statistics.rank_methods(scores, ["C4.5", "+m", "+cf", "+m+cf"], alpha=0.10)
        assert ranking.methods == ("+m+cf", "+m", "+cf", "C4.5")
        assert ranking.cliques == (("+m+cf", "+m", "+cf"), ("+cf", "C4.5"))
        assert ranking.blocks == 14

    def test_friedman_by_hand(self):
        # Rank sums 5, 8, 11: 12 / (4 * 3 * 4) * (25 + 64 + 121) - 3 * 4 * 4 = 4.5, F = 3 * 4.5 / (8 - 4.5).
        scores = np.array([[1, 2, 3], [1, 2, 3], [1, 3, 2], [2, 1, 3]])
        result = statistics.friedman(scores)
        assert result.chi_square == pytest.approx(4.5)
        assert result.chi_square_p == pytest.approx(math.exp(-2.25))
        assert result.f_statistic == pytest.approx(13.5 / 3.5)
        assert result.f_p == pytest.approx(stats.f.sf(13.5 / 3.5, 2, 6))

    def test_friedman_extremes(self):
        agreed = statistics.friedman(np.array([[1, 2, 3]] * 5))
        assert (agreed.f_statistic, agreed.f_p) == (math.inf, 0.0)
        assert agreed.chi_square == pytest.approx(10.0)
        level = statistics.friedman(np.ones((4, 3)))
        assert (level.chi_square, level.chi_square_p, level.f_p) == (0.0, 1.0, 1.0)

    @pytest.mark.parametrize(
        ("ranks", "difference", "expected"),
        [
            ([1.0, 2.0, 3.0], 1.5, [(0, 1), (1, 2)]),
            ([1.0, 2.0, 3.0], 5.0, [(0, 1, 2)]),
            ([1.0, 2.0, 3.0], 1.0, []),
            ([1.0, 1.2, 1.4, 3.0, 3.1], 0.5, [(0, 1, 2), (3, 4)]),
            ([1.0, 1.0], 0.1, [(0, 1)]),
            ([1.0], 1.0, []),
        ],
    )
    def test_cliques(self, ranks, difference, expected):
        assert statistics.cliques(ranks, difference) == expected

    def test_ranks_share_ties(self):
        assert statistics.average_ranks(np.array([[1.0, 1.0, 2.0]])).tolist() == [1.5, 1.5, 3.0]


class TestVerdict:
    def verdict(self, first, second, groups=None):
        return statistics.compare_runs(np.array(first), np.array(second), groups).verdict

    def test_five_runs_are_too_few_however_clear_and_six_are_not(self):
        assert self.verdict([0.01] * 5, [0.02] * 5) == statistics.UNDECIDED
        assert self.verdict([0.01] * 6, [0.02] * 6) == statistics.LOWER
        assert self.verdict([0.03] * 6, [0.02] * 6) == statistics.HIGHER

    def test_holm_can_take_it_away(self):
        decided = statistics.compare_runs(np.full(8, 0.01), np.full(8, 0.02))
        half = statistics.compare_runs(np.array([1.0, -1, 1, -1, 1, -1, 1, -1]), np.zeros(8))
        assert [one.verdict for one in statistics.adjust([decided] * 6)] == [statistics.LOWER] * 6
        # Nine runs, the smallest of which disagrees: p = 4 / 2^9. If it agreed, 7 * 2 / 2^9 would decide.
        almost = statistics.compare_runs(np.array([1.0, *range(-9, -1)]), np.zeros(9))
        assert almost.verdict == statistics.LOWER
        taken = statistics.adjust([almost, *[half] * 6])[0]
        assert (taken.adjusted_p, taken.verdict) == (pytest.approx(7 * 4 / 512), statistics.OPEN)

    def test_no_difference_is_not_said_where_none_could_be_shown(self):
        # Six runs that agree have p = 1/32; eight rows take that to 1/4 at best.
        six = statistics.compare_runs(np.full(6, 0.01), np.full(6, 0.02))
        adjusted = statistics.adjust([six] * 8)
        assert {one.reachable_p for one in adjusted} == {0.25}
        assert {one.verdict for one in adjusted} == {statistics.UNDECIDED}
        # Beside a row that is decided anyway, a second one could have been.
        many = statistics.compare_runs(np.full(20, 0.01), np.full(20, 0.02))
        mixed = statistics.compare_runs(np.array([1.0, -1, 1, -1, 1, -1]), np.zeros(6))
        assert [one.verdict for one in statistics.adjust([many, mixed])] == [
            statistics.LOWER,
            statistics.OPEN,
        ]

    def test_mixed(self):
        assert self.verdict([0.1, 0.2] * 3, [0.2, 0.1] * 3) == statistics.OPEN

    def test_a_mean_against_most_runs_decides_nothing(self):
        first = np.array([*np.linspace(0.001, 0.011, 11), -0.2])
        assert self.verdict(first, np.zeros(12), [str(number) for number in range(12)]) == statistics.OPEN

    def test_all_equal_decide_nothing(self):
        assert self.verdict([0.5] * 8, [0.5] * 8) == statistics.UNDECIDED


def test_a_normal_p_value_and_students_interval():
    assert statistics.normal_p(1.959963984540054) == pytest.approx(0.05)
    assert statistics.normal_p(0) == 1
    values = np.array([1.0, 2, 4])
    low, high = stats.t.interval(0.95, 2, values.mean(), stats.sem(values))
    found = statistics.student_interval(values)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    assert statistics.student_interval(values[:1]) is None
