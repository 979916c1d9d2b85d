"""Confidence thresholds, overconfident class counts, gamma*: hand values, exact arithmetic, errors."""

import math

import mpmath as mp
import numpy as np
import pytest

from focalcal.theory.psi import psi, psi_inverse
from focalcal.theory.thresholds import (
    confidence_region,
    gamma_star,
    largest_overconfident_gamma,
    largest_overconfident_gamma_near_uniform,
    minimiser_confidence,
    overconfidence_threshold,
    phi,
    underconfidence_threshold,
)


def test_phi_by_hand():
    assert phi(0.5, 2.0) == pytest.approx(0.25 + 0.5 * math.log(2), abs=1e-16)
    assert phi([0.0, 1.0], 2.0).tolist() == [1.0, 0.0]
    assert phi([0.0, 0.3, 1.0], 0.0).tolist() == [1.0, 1.0, 1.0]
    assert phi(1.0, -0.5) == math.inf
    assert phi(1.0, -1.0) == 0.5
    assert phi(1 - 1e-9, -1.0) == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("gamma", [-1.0, -0.4, 0.3, 2.0, 50.0])
def test_phi_against_exact_arithmetic(gamma):
    with mp.workdps(50):
        for v in (1e-300, 1e-9, 0.2, 0.5, 0.99, 1 - 1e-12):
            exact_v = mp.mpf(v)
            exact = (1 - exact_v) ** gamma - gamma * (1 - exact_v) ** (gamma - 1) * exact_v * mp.log(exact_v)
            assert float(phi(v, gamma)) == pytest.approx(float(exact), rel=2e-13)


@pytest.mark.parametrize("gamma", [1e-6, 0.03, 1.0, 3.0, 100.0, 1e4])
def test_thresholds_are_the_maximum_and_the_crossing(gamma):
    over, under = overconfidence_threshold(gamma), underconfidence_threshold(gamma)
    assert 0 < over < under < 0.5
    around = over * np.array([0.99, 1.0, 1.01])
    assert phi(around, gamma).argmax() == 1 or gamma < 1e-3
    assert float(phi(under, gamma)) == pytest.approx(1.0, abs=1e-12)


def test_known_thresholds():
    # gamma 1: phi = 1 - v - v log v is largest at e^-2 and 1 again at 1/e
    assert overconfidence_threshold(1.0) == pytest.approx(math.exp(-2), abs=1e-14)
    assert underconfidence_threshold(1.0) == pytest.approx(math.exp(-1), abs=1e-14)
    assert underconfidence_threshold(5.0) == pytest.approx(0.1968, abs=5e-5)


def test_regions():
    found = confidence_region([0.05, 0.2, 0.3], 1.0)
    assert found.tolist() == ["over", "ambiguous", "ambiguous"]
    assert confidence_region(0.5, 1.0) == "under"


def test_near_uniform_overconfidence_has_a_closed_form():
    for classes in (5, 8, 30):
        limit = largest_overconfident_gamma_near_uniform(classes)
        q = np.full((1, classes), (1 - (1 / classes + 1e-5)) / (classes - 1))
        q[0, 0] = 1 / classes + 1e-5
        for gamma, sign in ((0.9 * limit, 1), (1.1 * limit + 1e-3, -1)):
            assert np.sign(q.max() - psi(q, gamma).max()) == sign
    assert [largest_overconfident_gamma_near_uniform(k) for k in (2, 3, 4)] == [0.0, 0.0, 0.0]
    assert largest_overconfident_gamma_near_uniform(5) == pytest.approx(0.0293, abs=1e-4)


@pytest.mark.parametrize("classes", [3, 4, 5, 7])
def test_largest_overconfident_gamma_against_a_search(classes):
    generator = np.random.default_rng(0)
    rows = [generator.dirichlet(np.full(classes, flatness), 20_000) for flatness in (0.3, 1.0, 5.0)]
    small = np.geomspace(1e-9, 1 / classes, 2000)[:, None]
    for count in range(1, classes):
        large = (1 - count * small) / (classes - count)
        rows.append(np.hstack([np.repeat(large, classes - count, axis=1), np.repeat(small, count, axis=1)]))
    q = np.concatenate(rows)
    q = q / q.sum(axis=1, keepdims=True)
    limit = largest_overconfident_gamma(classes)
    surplus = lambda gamma: (q.max(axis=1) - psi(q, gamma).max(axis=1)).max()  # noqa: E731
    if classes > 3:
        assert surplus(0.98 * limit) > 1e-9
        assert surplus(0.5 * limit) > 1e-5
    for gamma in (1.001 * limit + 1e-3, 1.5 * limit + 0.1, 10.0):
        assert surplus(gamma) <= 1e-15


def test_largest_overconfident_gamma_is_gamma_star():
    # phi(1 / (K-1)) = 1 is M20's equation for p0 = 1 / (K-1)
    for classes in (4, 5, 11):
        assert largest_overconfident_gamma(classes) == pytest.approx(gamma_star(1 / (classes - 1)), rel=1e-12)


def test_minimiser_confidence():
    assert minimiser_confidence([0.5, 0.8], 2, 2.0) == pytest.approx([0.5, 0.626615], abs=1e-6)
    rest = np.full(999, 0.9 / 999)
    direct = psi_inverse(np.append(0.1, rest)[None], 1.0).max()
    assert minimiser_confidence(0.1, 1000, 1.0)[0] == pytest.approx(direct, abs=1e-12)
    assert direct > 0.1
    assert minimiser_confidence(1.0, 10, 3.0)[0] == 1.0


@pytest.mark.parametrize(
    ("p0", "gamma"), [(0.10, 14.92), (0.20, 4.851), (0.25, 3.070), (1 / math.e, 1.0), (0.5, 0.0)]
)
def test_gamma_star_values(p0, gamma):
    assert gamma_star(p0) == pytest.approx(gamma, abs=5e-3)


@pytest.mark.parametrize("p0", [1e-6, 1e-3, 0.1, 0.3, 0.45, 0.4999, 0.499999])
def test_gamma_star_solves_its_equation(p0):
    gamma = gamma_star(p0)
    with mp.workdps(40):
        a, b = 1 - mp.mpf(p0), mp.mpf(p0) * mp.log(mp.mpf(p0))
        exact = a / b + mp.lambertw(-(a ** (1 - a / b)) / b * mp.log(a), -1).real / mp.log(a)
        assert gamma == pytest.approx(float(exact), rel=1e-9)
    assert underconfidence_threshold(gamma) == pytest.approx(p0, rel=1e-9)
    above = np.linspace(p0, 1, 50)[1:]
    assert (phi(above, gamma) < 1).all()
    assert (phi(np.linspace(p0 / 50, p0, 50)[:-1], gamma) > 1).all()


@pytest.mark.parametrize("p0", [0.0, -0.1, 0.51, 1.0])
def test_bad_p0(p0):
    with pytest.raises(ValueError, match=r"^p0 must lie in \(0, 0\.5\], got"):
        gamma_star(p0)


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"^gamma must be above 0, got 0\.0"):
        overconfidence_threshold(0.0)
    with pytest.raises(ValueError, match=r"^gamma must be above 0, got -0\.5"):
        underconfidence_threshold(-0.5)
    with pytest.raises(ValueError, match=r"^v must lie in \[0, 1\], got 1\.5"):
        phi(1.5, 2.0)
    with pytest.raises(ValueError, match=r"^v is nan; allowed: finite numbers"):
        phi(math.nan, 2.0)
    with pytest.raises(ValueError, match=r"^max_eta must be at least 1/classes = 0\.25, got 0\.1"):
        minimiser_confidence(0.1, 4, 1.0)
    with pytest.raises(ValueError, match=r"^classes must be at least 2, got 1"):
        largest_overconfident_gamma(1)
    with pytest.raises(ValueError, match=r"^classes must be one finite number, got 'x'"):
        largest_overconfident_gamma("x")
