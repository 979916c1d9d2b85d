import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from focalcal.reporting.statistics import ranking as statistics
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


def test_an_interval_of_a_mean_is_that_of_students_t():
    values = [0.1, 0.4, 0.25, 0.3]
    low, high = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
    rows = [("a", value) for value in values] + [("b", 0.5)]
    found = seed_intervals(pd.DataFrame(rows, columns=["loss", "value"]), ["loss"], 0.95)
    assert found["seeds"].tolist() == [4, 1]
    several, single = found.to_dict("records")
    assert several["mean"] - several["half_width"] == pytest.approx(low, rel=1e-12)
    assert several["mean"] + several["half_width"] == pytest.approx(high, rel=1e-12)
    assert single["mean"] == 0.5
    assert math.isnan(single["half_width"])


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
