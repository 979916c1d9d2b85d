import numpy as np
import pytest

from focalcal.calibration.fitting.search import K24_GAMMAS, K24_TEMPERATURES
from focalcal.reporting.claims.measured import prediction_error

TEMPERATURES = np.arange(1, 11) / 2


def error_of(best):
    """Return the error for a surface whose row g is smallest at temperature best[g]."""
    gammas = np.array([0.0, -0.5, 1.0, 2.0])[: len(best)]
    values = np.abs(TEMPERATURES[None, :] - np.array(best)[:, None]) + 0.1
    return prediction_error([{"gammas": gammas, "temperatures": TEMPERATURES, "ece": values}], "ece")


def test_an_exact_line_is_found_without_the_point_at_the_bound():
    """T = 1.5 + gamma, except for gamma 2, whose optimum lies beyond the grid."""
    assert error_of([1.5, 1.0, 2.5, 5.0]) == pytest.approx(0.0, abs=1e-12)


def test_each_temperature_is_predicted_from_the_others():
    """From the other two, the lines predict 1.75 at -0.5, 1.5 at 0 and 4 at 1: errors of 0.75, 0.25, 0.6."""
    assert error_of([2.0, 1.0, 2.5]) == pytest.approx(0.75)


def test_a_far_gamma_does_not_make_a_bent_relation_straight():
    """On K24's gammas, sqrt(1 + gamma) has R² 0.97, but the line through the others misses it at 5 by far."""
    gammas, temperatures = np.array([0.0, *K24_GAMMAS]), np.array(K24_TEMPERATURES)
    values = np.abs(temperatures[None] - np.sqrt(1 + gammas)[:, None])
    surfaces = {"gammas": gammas, "temperatures": temperatures, "ece": values}
    assert prediction_error([surfaces], "ece") > 0.3


def test_two_points_predict_nothing():
    assert error_of([0.5, 1.0, 2.0, 5.0]) is None


def test_a_constant_temperature_is_a_line():
    assert error_of([2.0, 2.0, 2.0]) == pytest.approx(0.0, abs=1e-12)
