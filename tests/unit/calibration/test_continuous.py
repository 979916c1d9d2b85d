"""The exact minima of the log-loss against dense grids, scikit-learn and theory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from focalcal.calibration.calibrators import FocalTemperatureScaling, TemperatureScaling
from focalcal.calibration.fitting import continuous
from focalcal.calibration.fitting.continuous import (
    GAMMA_RANGE,
    SAMPLE,
    best_focal_map,
    best_temperature,
    temperature_range,
)
from focalcal.calibration.fitting.objective import Objective
from tests.unit.calibration.logit_sets import SETS, like_a_network, noisy

DENSE_GAMMAS = np.minimum(np.expm1(np.linspace(*np.log1p(GAMMA_RANGE), 60)), GAMMA_RANGE[1])


def dense_minimum(objective):
    low, high = temperature_range(objective.logits)
    return objective.nll(DENSE_GAMMAS, np.geomspace(low, high, 400)).min()


@pytest.mark.parametrize("name", SETS)
def test_nothing_on_a_dense_grid_is_below_the_minimum(name):
    objective = Objective(*SETS[name])
    assert best_focal_map(objective).score <= dense_minimum(objective) + 1e-12
    assert best_focal_map(objective).evaluations < 2000


@pytest.mark.parametrize("name", SETS)
def test_fts_is_never_worse_than_ts_on_the_data_fitted_to(name):
    assert FocalTemperatureScaling().fit(*SETS[name]).score_ <= TemperatureScaling().fit(*SETS[name]).score_


@settings(max_examples=60, deadline=None)
@given(
    samples=st.integers(1, 700),
    classes=st.integers(2, 12),
    spread=st.floats(-3.0, 3.0),
    signal=st.floats(-1.0, 5.0),
    seed=st.integers(0, 10**6),
)
def test_fts_is_never_worse_than_ts_on_any_data(samples, classes, spread, signal, seed):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, samples)
    logits = generator.normal(size=(samples, classes)) + signal * np.eye(classes)[labels]
    objective = Objective(logits * 10.0**spread, labels)
    scaled, focal = best_temperature(objective), best_focal_map(objective)
    assert focal.score <= scaled.score
    assert scaled.score <= objective.nll([0.0], [1.0])[0, 0] + 1e-9
    assert focal.score == objective.nll(*([value] for value in focal.parameters.values()))[0, 0]


def test_a_minimum_inside_is_stationary():
    objective = Objective(*like_a_network(500, 8, seed=33))
    fit = best_focal_map(objective)
    gamma, temperature = fit.parameters.values()
    assert fit.boundaries == {}
    step = 1e-4
    around = objective.nll(gamma + np.array([-step, step]), [temperature])[:, 0]
    assert abs(around[1] - around[0]) / (2 * step) < 1e-6
    around = objective.nll([gamma], temperature * np.exp([-step, step]))[0]
    assert abs(around[1] - around[0]) / (2 * step) < 1e-6


@pytest.mark.parametrize("samples", [SAMPLE // 2, 4 * SAMPLE])
def test_the_better_of_two_basins_is_found(samples):
    """These sets' log-losses have local minima at a negative and at a positive gamma."""
    objective = Objective(*noisy(samples, 34, 3.0, 5, noise=2.0))
    profile = objective.nll(DENSE_GAMMAS, np.geomspace(1, 20, 150)).min(axis=1)
    padded = np.pad(profile, 1, constant_values=np.inf)
    assert np.count_nonzero((profile < padded[:-2]) & (profile < padded[2:])) >= 2
    assert best_focal_map(objective).score <= profile.min() + 1e-12


def test_a_basin_that_the_sample_misses_does_not_lose_to_temperature_scaling(monkeypatch):
    objective = Objective(*like_a_network(400, 5, seed=3))
    monkeypatch.setattr(continuous, "_starts", lambda *_: [np.log([100.0, 100.0])])
    monkeypatch.setattr(continuous, "ROUGH_DECREASE", 1.0)
    monkeypatch.setattr(continuous, "LEAST_DECREASE", 1e-9)
    assert best_focal_map(objective).score <= best_temperature(objective).score


def test_a_minimum_that_is_not_reached_raises(monkeypatch):
    monkeypatch.setattr(continuous, "LARGEST_STEP_COUNT", 1)
    monkeypatch.setattr(continuous, "ROUGH_DECREASE", 0.0)
    with pytest.raises(FloatingPointError, match="not reached in 1 Newton steps"):
        best_focal_map(Objective(*SETS["moderate"]))


def test_samples_without_an_error_want_the_smallest_temperature():
    logits, labels = SETS["all right"]
    lowest = temperature_range(logits)[0]
    fit = best_temperature(Objective(logits, labels))
    assert (fit.parameters, fit.boundaries) == (
        {"gamma": 0.0, "temperature": lowest},
        {"temperature": "low"},
    )


def test_logits_that_mislead_want_the_largest_temperature():
    logits = np.tile([3.0, 0.0, 0.0], (60, 1))
    fit = best_temperature(Objective(logits, np.ones(60, dtype=np.int64)))
    assert fit.boundaries == {"temperature": "high"}
    assert fit.parameters["temperature"] == temperature_range(logits)[1] == pytest.approx(2000.0)


@pytest.mark.parametrize(
    ("logits", "expected"),
    [
        ([[0.0, 3.0, 0.0], [2.0, 2.0, 2.0], [0.0, 30.0, 0.0], [0.0, 6.0, 0.0]], (4e-3, 4e3)),
        ([[1.0, 1.0]], (1e-3, 1e3)),
        ([[0.0, 1e-5]], (1e-4, 1e-1)),
    ],
)
def test_the_range_of_temperatures_by_hand(logits, expected):
    assert temperature_range(np.array(logits)) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(20))
def test_quadratic_minimum_over_a_rectangle_beats_a_grid_of_points(seed):
    generator = np.random.default_rng(seed)
    gradient, half = generator.normal(size=2), generator.normal(size=(2, 2))
    hessian = half + half.T
    low, high = -generator.random(2), generator.random(2)
    best = continuous._minimise_quadratic(gradient, hessian, low, high)
    assert np.all((low <= best) & (best <= high))
    grid = np.stack(np.meshgrid(*np.linspace(low, high, 60).T), axis=-1).reshape(-1, 2)
    values = grid @ gradient + 0.5 * np.sum((grid @ hessian) * grid, axis=1)
    assert gradient @ best + 0.5 * best @ hessian @ best <= values.min() + 1e-12


def test_nll_temperature_agrees_with_scikit_learn():
    generator = np.random.default_rng(5)
    labels = generator.integers(0, 4, 1500)
    features = generator.normal(size=(1500, 3)) + np.eye(4)[labels][:, :3] * 1.5
    model = LogisticRegression(C=1e4).fit(features[:200], labels[:200])
    calibrated = CalibratedClassifierCV(FrozenEstimator(model), method="temperature").fit(features, labels)
    expected = 1 / float(calibrated.calibrated_classifiers_[0].calibrators[0].beta_)
    found = best_temperature(Objective(model.decision_function(features), labels))
    assert found.parameters["temperature"] == pytest.approx(expected, rel=1e-6)
