"""Two temperatures: the gamma that they imply."""

import pytest

from focalcal.theory.two_temperatures import implied_gamma, is_clear


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
