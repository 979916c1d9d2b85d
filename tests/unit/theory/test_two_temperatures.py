"""Two temperatures: the gamma that they imply."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp

from focalcal.theory.psi import log_psi
from focalcal.theory.two_temperatures import implied_gamma, is_clear, largest_errors


def test_implied_gamma_by_hand():
    assert implied_gamma(1.5, 1.5) == 0.0
    assert implied_gamma(2.0, 1.0) == -0.5
    assert implied_gamma(0.5, 1.5) == pytest.approx(2.0)


def test_bad_temperatures_are_named():
    with pytest.raises(ValueError, match=r"^top_temperature must be above 0, got 0\.0"):
        implied_gamma(0, 1)
    with pytest.raises(ValueError, match=r"^rest_temperature must be one finite number, got nan"):
        implied_gamma(1, float("nan"))


def test_temperatures_that_differ_by_a_tenth_are_clear():
    assert [is_clear(gamma) for gamma in (0.11, 0.09, 0.0, 1 / 1.09 - 1, 1 / 1.11 - 1)] == [
        *(True, False, False, False, True)
    ]


def errors(logits, gamma):
    """Return by row R, the largest error among the rest, that of the top class, and the gap of line 3."""
    logits = np.sort(logits, axis=1)[:, ::-1]
    gaps = logits - logits[:, :1]
    logs = log_psi(logits, gamma)
    among = logs[:, 1:] - logs[:, 1:2] - (gaps[:, 1:] - gaps[:, 1:2])
    against = logsumexp(gaps[:, 1:], axis=1)
    log_odds = logs[:, 0] - logsumexp(logs[:, 1:], axis=1)
    top = log_odds - (-(gamma + 1) * against - math.log1p(gamma))
    line = -(gamma + 1) * against + logsumexp((gamma + 1) * gaps[:, 1:], axis=1)
    return np.exp(against), np.abs(among).max(axis=1), np.abs(top), line


@pytest.mark.parametrize("gamma", [-0.95, -0.5, -0.1, 0.5, 3.0, 10.0])
@pytest.mark.parametrize("classes", [2, 3, 10, 1000])
def test_the_map_is_two_temperatures_within_the_proved_errors(gamma, classes):
    generator = np.random.default_rng(classes)
    logits = generator.normal(size=(400, classes)) * generator.uniform(0.1, 6, size=(400, 1))
    logits[:, 0] = logits[:, 1:].max(axis=1) + math.log(classes) + generator.exponential(3, size=400)
    odds, among, top, line = errors(logits, gamma)
    confident = odds <= 1
    assert confident.sum() > 100
    bound_among, bound_top = largest_errors(odds[confident], gamma)
    assert (among[confident] <= bound_among + 1e-12).all()
    assert (top[confident] <= bound_top + 1e-12).all()
    ends = sorted((0.0, -gamma * math.log(classes - 1)))
    assert ((line >= ends[0] - 1e-9) & (line <= ends[1] + 1e-9)).all()


def test_errors_vanish_with_the_odds_and_are_not_far_from_attained():
    among, top = largest_errors([0.0, 1e-6, 1e-3], 3.0)
    assert (among[0], top[0]) == (0.0, 0.0)
    assert among[1] < 1e-4 > top[1]
    # Two classes share what is left: e counts each of them with all of it.
    logits = np.array([[0.0, math.log(5e-4), math.log(5e-4) - 6]])
    odds, found, _, _ = errors(logits, 3.0)
    bound, _ = largest_errors(odds, 3.0)
    assert 0.3 * bound < found < bound


def test_odds_above_one_are_refused():
    with pytest.raises(ValueError, match=r"^odds_against must lie in \[0, 1\], got 1\.5"):
        largest_errors([0.5, 1.5], 1.0)
