"""Temperature bounds: closed forms, K24's numbers and scan, exact arithmetic, the certificate, errors."""

import itertools
import json
import math

import mpmath as mp
import numpy as np
import pytest

from focalcal.theory import certificate as proof
from focalcal.theory.bounds import (
    critical_gamma,
    initial_slope,
    logit_slope,
    minimising_logit,
    scanned_temperatures,
    slope_range,
    theoretical_temperatures,
    tightest_temperatures,
)
from focalcal.theory.psi import binary_logit_map, log_psi
from focalcal.theory.tables import bounds_rows, bounds_summary


def exact_slope(s, gamma):
    """Return c(s) with the working precision of mpmath."""
    a = lambda t: mp.e**t * mp.log1p(mp.e**-t)  # noqa: E731 - the paper's a(s)
    return gamma + 1 - mp.log((1 + gamma * a(s)) / (1 + gamma * a(-s))) / s


def test_theoretical_temperatures_of_the_text():
    low, high = theoretical_temperatures(4.0)
    assert (round(low, 3), round(high, 3)) == (0.2, 0.238)
    assert theoretical_temperatures(0.0) == (1.0, 1.0)


def test_tightest_temperatures_at_gamma_4():
    low, high = tightest_temperatures(4.0)
    with mp.workdps(40):
        assert low == pytest.approx(float(1 / exact_slope(mp.mpf(20), 4)), abs=1e-15)
        slope = 5 - 8 * (mp.log(2) - mp.mpf(1) / 2) / (1 + 4 * mp.log(2))
        assert high == pytest.approx(float(1 / slope), abs=1e-15)
    # K24 prints [0.206, 0.218]: one bound agrees, the other does not
    assert round(high, 3) == 0.218
    assert round(low, 3) == 0.203


@pytest.mark.parametrize("gamma", [7.0, 10.0, 100.0])
def test_interior_minimum_against_exact_arithmetic(gamma):
    with mp.workdps(40):
        derivative = lambda s: mp.diff(lambda t: exact_slope(t, mp.mpf(gamma)), s)  # noqa: E731
        place = mp.findroot(derivative, mp.mpf(minimising_logit(gamma)))
        least = exact_slope(place, mp.mpf(gamma))
        assert slope_range(gamma, math.inf)[0] == pytest.approx(float(least), rel=1e-14)
    assert slope_range(gamma, math.inf)[0] < initial_slope(gamma)


@pytest.mark.parametrize("gamma", [-0.9, -0.5, 0.01, 0.5, 3.0, 5.6, 5.7, 9.0, 50.0])
@pytest.mark.parametrize("max_logit", [0.005, 0.5, 3.0, 20.0, 1000.0])
def test_tightest_temperatures_against_a_dense_grid(gamma, max_logit):
    near, far = (
        np.linspace(0, min(max_logit, 20.0), 40_001)[1:],
        np.geomspace(min(max_logit, 20.0), max_logit, 99),
    )
    grid = np.append(near, far)
    slopes = np.append(logit_slope(grid, gamma), initial_slope(gamma))
    low, high = tightest_temperatures(gamma, max_logit)
    assert 1 / slopes.max() == pytest.approx(low, abs=1e-9)
    assert 1 / slopes.min() == pytest.approx(high, abs=1e-9)
    assert low <= 1 / slopes.max() + 1e-15
    assert high >= 1 / slopes.min() - 1e-15


@pytest.mark.parametrize("gamma", [0.5, 4.0, 10.0])
def test_the_papers_scan_agrees_within_its_step(gamma):
    step = 0.001 if gamma != 4.0 else 0.0005
    low, high = scanned_temperatures(gamma, temperature_step=step, logit_step=0.01)
    exact_low, exact_high = tightest_temperatures(gamma)
    assert 0 <= exact_low - low <= step
    assert 0 <= high - exact_high <= step + 1e-12


def test_whole_line_limits():
    low, high = tightest_temperatures(2.0, math.inf)
    assert low == 1 / 3
    assert high == pytest.approx(1 / initial_slope(2.0), abs=1e-16)
    assert tightest_temperatures(0.0, math.inf) == (1.0, 1.0)


def test_theory_contains_the_exact_interval():
    for gamma in np.linspace(0.05, 60, 80):
        low, high = theoretical_temperatures(gamma)
        tight_low, tight_high = tightest_temperatures(gamma, math.inf)
        assert low <= tight_low < tight_high < high


@pytest.mark.parametrize("gamma", [-0.95, -0.7, -0.5, -0.1])
def test_for_negative_gamma_the_temperatures_of_the_proposition_change_places(gamma):
    low, high = theoretical_temperatures(gamma)
    assert high == 1 / (gamma + 1)
    assert low == pytest.approx(1 / (gamma + 1 - math.log(gamma + 1) / 2), rel=1e-15)
    tight_low, tight_high = tightest_temperatures(gamma, math.inf)
    assert low < tight_low
    assert tight_high == high
    # the sharp one is the slope at 0, and exact arithmetic finds the slope between the two
    assert 1 / tight_low == pytest.approx(initial_slope(gamma), rel=1e-15)
    with mp.workdps(40):
        for s in (1e-3, 0.1, 1.0, 5.0, 30.0):
            assert 1 / tight_high < exact_slope(mp.mpf(s), mp.mpf(gamma)) < 1 / tight_low


@pytest.mark.parametrize("gamma", [-0.999, -0.95, -0.7, -0.1])
def test_for_negative_gamma_the_map_increases_and_keeps_the_order_of_classes(gamma):
    s = np.linspace(0.0, 40.0, 4001)
    # where the slope has reached gamma + 1, rounding decides
    assert np.diff(binary_logit_map(s, gamma)).min() > (1 + gamma) * 0.01 - 1e-13
    for classes in (2, 3, 10, 1000):
        spread = np.geomspace(0.01, 20, 50)[:, None]
        rows = np.sort(np.random.default_rng(classes).normal(size=(50, classes)) * spread, axis=1)
        assert np.diff(log_psi(rows, gamma), axis=1).min() > 0


def test_certificate_of_negative_gammas():
    record = proof.certify_negative_gammas()
    ranges = record["p_positive_at_gamma_minus_1"]
    assert (ranges[0]["from"], ranges[-1]["to"]) == (0.0, None)
    assert all(a["to"] == b["from"] for a, b in itertools.pairwise(ranges))
    assert float(record["kappa"].strip("[]").split()[0]) == pytest.approx(initial_slope(-1.0), rel=1e-15)


def test_critical_gamma_to_six_digits():
    # the coefficient of s^3 in log f vanishes there
    with mp.workdps(40):

        def cubic(gamma):
            a = lambda t: mp.e**t * mp.log1p(mp.e**-t)  # noqa: E731 - the paper's a(s)
            log_f = lambda t: mp.log((1 + gamma * a(t)) / (1 + gamma * a(-t)))  # noqa: E731
            return mp.taylor(log_f, 0, 3)[3]

        assert abs(cubic(mp.mpf(critical_gamma()))) < 1e-12
        assert cubic(mp.mpf(5)) < 0 < cubic(mp.mpf(6))
    assert critical_gamma() == pytest.approx(5.635380, abs=5e-7)
    assert minimising_logit(5.63) == 0.0
    assert minimising_logit(5.645) > 0.05


def test_table_and_summary():
    rows = bounds_rows([1.0, 4.0], 20.0)
    assert [row["gamma"] for row in rows] == [1.0, 4.0]
    assert rows[1]["tightest_low"] == tightest_temperatures(4.0)[0]
    summary = bounds_summary([4.0], 2.0)
    assert summary["critical_gamma"] == critical_gamma()
    assert summary["scans"][0]["scan_high"] >= summary["scans"][0]["exact_high"]


@pytest.mark.parametrize("gamma", [-1.0, -1.5, float("nan")])
def test_bad_gamma(gamma):
    with pytest.raises(ValueError, match=r"^gamma must be"):
        tightest_temperatures(gamma)


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"^gamma must be above -1, got -1\.0"):
        theoretical_temperatures(-1)
    with pytest.raises(ValueError, match=r"^max_logit must be above 0, got 0\.0"):
        tightest_temperatures(1.0, 0)
    with pytest.raises(ValueError, match=r"^max_logit must be one finite number, got nan"):
        tightest_temperatures(1.0, math.nan)


@pytest.mark.parametrize("gamma", [0.5, 1.0, 4.0, 7.0, 10.0])
def test_certificate_of_one_gamma(gamma):
    record = proof.certify(gamma)
    constant = float(record["lower_constant"].strip("[]").split()[0])
    assert constant == pytest.approx(slope_range(gamma, math.inf)[0], abs=2e-14)
    assert record["upper_constant"] == gamma + 1
    ranges = record["ranges"]
    assert ranges[0]["from"] == 0.0
    assert ranges[-1]["to"] is None
    assert all(a["to"] == b["from"] for a, b in itertools.pairwise(ranges))
    assert all(part["boxes"] > 0 for part in ranges[:-1])
    # the inequality of the tail, checked separately: log(1 + gamma) <= k s from its start on
    assert math.log1p(gamma) <= (gamma + 1 - constant) * ranges[-1]["from"] * (1 + 1e-14)


def test_certificate_rechecked_by_other_interval_arithmetic():
    # mpmath's intervals at gamma 1 from s = 1 to the tail; f grows with s (K24 A.3): its right end is a bound
    record = proof.certify(1.0)
    one = mp.iv.mpf(1)
    slope = 2 * (mp.iv.log(2) - one / 2) / (1 + mp.iv.log(2))
    edges = np.linspace(1.0, record["ranges"][-1]["from"], 600)
    for low, high in itertools.pairwise(edges.tolist()):
        s = mp.iv.mpf(high)
        near = 1 + mp.iv.exp(s) * mp.iv.log(1 + mp.iv.exp(-s))
        far = 1 + mp.iv.exp(-s) * mp.iv.log(1 + mp.iv.exp(s))
        assert (slope * mp.iv.mpf(low) - mp.iv.log(near / far)).a > 0


def test_certificate_of_the_critical_gamma():
    record = proof.certify_critical_gamma()
    assert float(record["critical_gamma"].strip("[]").split()[0]) == pytest.approx(
        critical_gamma(), abs=1e-12
    )
    for part in ("bound_at_critical_gamma", "d_positive", "w_negative"):
        assert record[part][0]["from"] == 0.0
        assert record[part][-1]["to"] is None


def test_a_false_inequality_is_not_proved():
    with proof._working_precision(), pytest.raises(ArithmeticError, match="could not prove 'false'"):
        proof._proof_on_boxes("false", 0.0, 1.0, lambda box: box < 0.5)
    # with a slope below the critical one the bound fails at once above the critical gamma
    with proof._working_precision():
        ball = proof._exact(7.0)
        slope = proof._initial_excess(ball)
        with pytest.raises(ArithmeticError):
            proof._middle("too sharp", 0.25, 4.0, lambda u: slope * u - proof._log_ratio(u, ball))


def test_certificate_is_json_and_restores_the_precision():
    before = proof.ctx.prec, proof.ctx.cap
    record = proof.certificate((1.0,))
    assert (proof.ctx.prec, proof.ctx.cap) == before
    assert json.loads(json.dumps(record))["theorem_a"][0]["gamma"] == 1.0
    with pytest.raises(ValueError, match=r"^gamma must be above 0, got 0\.0"):
        proof.certify(0.0)
