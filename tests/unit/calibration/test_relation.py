import numpy as np
import pytest

from focalcal.calibration import relation
from focalcal.calibration.search import K24_GAMMAS, K24_TEMPERATURES

TEMPERATURES = np.arange(1, 11) / 2


def surfaces(best, criterion="ece"):
    """A surface whose row g is smallest at temperature best[g]."""
    gammas = np.array([0.0, -0.5, 1.0, 2.0])[: len(best)]
    values = np.abs(TEMPERATURES[None, :] - np.array(best)[:, None]) + 0.1
    return {"gammas": gammas, "temperatures": TEMPERATURES, criterion: values}


def test_best_temperatures_are_ordered_by_gamma_and_say_where_the_grid_ends():
    rows = relation.best_temperatures(surfaces([1.5, 1.0, 2.5, 5.0]))
    assert [(row["gamma"], row["temperature"], row["bound_hit"]) for row in rows] == [
        (-0.5, 1.0, "none"),
        (0.0, 1.5, "none"),
        (1.0, 2.5, "none"),
        (2.0, 5.0, "high"),
    ]
    assert {row["criterion"] for row in rows} == {"ece"}
    assert all(row["score"] == pytest.approx(0.1) for row in rows)


def test_an_exact_line_is_found_without_the_point_at_the_bound():
    """T = 1.5 + gamma, but for gamma 2, whose optimum lies beyond the grid."""
    (row,) = relation.linear_relations(surfaces([1.5, 1.0, 2.5, 5.0]))
    assert row["slope"] == pytest.approx(1.0)
    assert row["intercept"] == pytest.approx(1.5)
    assert row["r_squared"] == pytest.approx(1.0)
    assert row["largest_deviation"] == pytest.approx(0.0, abs=1e-12)
    assert row["prediction_error"] == pytest.approx(0.0, abs=1e-12)
    assert (row["points"], row["left_out"]) == (3, 1)


def test_a_bent_relation_has_its_least_squares_line():
    """Points (-0.5, 1), (0, 2), (1, 2.5): slope 13/14, intercept 47/28 (normal equations by hand)."""
    (row,) = relation.linear_relations(surfaces([2.0, 1.0, 2.5]))
    assert row["slope"] == pytest.approx(13 / 14)
    assert row["intercept"] == pytest.approx(47 / 28)
    assert 0 < row["r_squared"] < 1
    assert row["largest_deviation"] == pytest.approx(9 / 28)
    # From the other two, the lines predict 1.75 at -0.5, 1.5 at 0 and 4 at 1: errors of 0.75, 0.25 and 0.6.
    assert row["prediction_error"] == pytest.approx(0.75)


def test_a_far_gamma_does_not_make_a_bent_relation_straight():
    """On K24's gammas, sqrt(1 + gamma) has R² 0.97, but the line through the others misses it at 5 by far."""
    gammas, temperatures = np.array([0.0, *K24_GAMMAS]), np.array(K24_TEMPERATURES)
    values = np.abs(temperatures[None] - np.sqrt(1 + gammas)[:, None])
    (row,) = relation.linear_relations({"gammas": gammas, "temperatures": temperatures, "ece": values})
    assert row["r_squared"] > 0.95
    assert row["prediction_error"] > 0.3


def test_too_few_points_have_no_line():
    (row,) = relation.linear_relations(surfaces([0.5, 5.0, 2.0, 5.0]))
    assert row["slope"] is None
    assert row["prediction_error"] is None
    assert (row["points"], row["left_out"]) == (1, 3)


def test_a_constant_temperature_explains_no_variance():
    (row,) = relation.linear_relations(surfaces([2.0, 2.0, 2.0]))
    assert row["slope"] == pytest.approx(0.0, abs=1e-12)
    assert row["r_squared"] is None
