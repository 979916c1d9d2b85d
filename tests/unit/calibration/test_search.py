import numpy as np
import pytest

from focalcal.calibration.fitting import search
from focalcal.calibration.fitting.objective import Objective
from tests.unit.calibration.logit_sets import SETS, brute_force

TEMPERATURES = np.arange(1, 101) / 20


class Surface:
    """An objective with given numbers instead of logits."""

    def __init__(self, values):
        self.values = np.array(values, dtype=float)

    def surfaces(self, gammas, temperatures):
        assert self.values.shape == (len(gammas), len(temperatures))
        return {"nll": self.values, "ece": self.values, "adaece": self.values}


def point(fit):
    return fit.parameters["gamma"], fit.parameters["temperature"]


def test_k24_grids_are_the_nearest_floats_of_their_decimals():
    assert len(search.K24_TEMPERATURES) == 500
    assert search.K24_TEMPERATURES[28] == 0.29
    assert search.K24_TEMPERATURES[-1] == 5.0
    np.testing.assert_array_equal(search.temperature_grid(0.01, 5.0, 0.01), search.K24_TEMPERATURES)
    assert search.K24_GAMMAS == (-0.5, -0.25, 0.05, 0.25, 0.37, 0.5, 0.75, 1.0, 5.0)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [((0.1, 0.35, 0.1), [0.1, 0.2, 0.3]), ((1, 1, 0.5), [1.0]), ((0.5, 1e0, 2.5e-1), [0.5, 0.75, 1.0])],
)
def test_temperature_grid_ends_at_or_before_stop(arguments, expected):
    assert search.temperature_grid(*arguments).tolist() == expected


def test_grid_search_takes_the_first_of_equal_minima_by_gamma_then_temperature():
    fit = search.grid_search(Surface([[3, 2, 1], [1, 1, 5]]), "nll", (0.5, -0.5), np.array([0.1, 0.2, 0.3]))
    assert (fit.parameters, fit.score, fit.evaluations) == ({"gamma": 0.5, "temperature": 0.3}, 1.0, 6)
    assert fit.boundaries == {"gamma": "high", "temperature": "high"}


@pytest.mark.parametrize(
    ("values", "boundaries"),
    [([1, 2, 3], {"temperature": "low"}), ([2, 1, 3], {}), ([3, 2, 1], {"temperature": "high"})],
)
def test_grid_search_records_the_boundary_it_stopped_at(values, boundaries):
    fit = search.grid_search(Surface([values]), "ece", (0.0,), np.arange(1.0, 4.0))
    assert fit.boundaries == boundaries


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_non_finite_objective_raises(bad):
    with pytest.raises(FloatingPointError, match="criterion ece is not finite at 1 of 3 points"):
        search.grid_search(Surface([[1.0, bad, 2.0]]), "ece", (0.0,), np.arange(1.0, 4.0))


@pytest.mark.parametrize("criterion", ["nll", "ece", "adaece"])
def test_grid_search_finds_the_brute_force_minimum(criterion):
    logits, labels = SETS["like a network"]
    temperatures = TEMPERATURES[::4]
    fit = search.grid_search(Objective(logits, labels), criterion, (-0.5, 0.5, 2.0), temperatures)
    slow = brute_force(logits, labels, [-0.5, 0.5, 2.0], list(temperatures))[criterion]
    row, column = np.unravel_index(slow.argmin(), slow.shape)
    assert fit.parameters == {"gamma": (-0.5, 0.5, 2.0)[row], "temperature": temperatures[column]}
    assert fit.score == pytest.approx(slow.min(), abs=1e-12)


def test_line_search_costs_three_temperature_scalings_and_stays_on_the_line():
    objective = Objective(*SETS["moderate"])
    fit = search.line_search(objective, "nll", (0.3, -0.5, 2.0), TEMPERATURES)
    ends = [search.grid_search(objective, "nll", (gamma,), TEMPERATURES) for gamma in (0.0, 1.0)]
    assert fit.evaluations == 3 * len(TEMPERATURES)
    gamma, temperature = point(fit)
    low, high = (point(end)[1] for end in ends)
    assert temperature == pytest.approx(low + gamma * (high - low), abs=1e-12)
    assert fit.score == pytest.approx(objective.points([gamma], [temperature])["nll"][0], abs=1e-13)


@pytest.mark.parametrize("criterion", ["nll", "ece", "adaece"])
@pytest.mark.parametrize("name", ["moderate", "like a network", "saturated", "all right", "many classes"])
def test_line_search_is_never_worse_than_temperature_scaling(name, criterion):
    objective = Objective(*SETS[name])
    line = search.line_search(objective, criterion, search.K24_GAMMAS, TEMPERATURES)
    plain = search.grid_search(objective, criterion, (0.0,), TEMPERATURES)
    assert line.score <= plain.score
    assert TEMPERATURES[0] <= point(line)[1] <= TEMPERATURES[-1]


def test_focal_loss_search_with_gamma_zero_is_temperature_scaling_by_nll():
    objective = Objective(*SETS["moderate"])
    focal = search.focal_loss_search(objective, 0.0, TEMPERATURES)
    plain = search.grid_search(objective, "nll", (0.0,), TEMPERATURES)
    assert focal.parameters == plain.parameters
    assert focal.score == pytest.approx(plain.score, abs=1e-12)
