"""Simulated logits: what distortions do, what calibrators undo, and what their parameters cost."""

import json

import numpy as np
import pytest

from focalcal.calibration import simulation
from focalcal.calibration.calibrators import load_calibrator
from focalcal.calibration.catalogue import DISTORTIONS
from focalcal.calibration.simulation import applicable, distorted, divergences, log_posteriors, repetitions
from focalcal.common.csv_rows import read_rows
from focalcal.theory.psi import log_psi
from workflow_scripts import simulate


@pytest.fixture
def log_posterior():
    return log_posteriors(np.random.default_rng(0), 400, 4)


def test_posteriors_are_those_of_the_classes(log_posterior):
    # Bayes' rule for means at distance d on the axes: the posterior is softmax(d x).
    generator = np.random.default_rng(0)
    inputs, classes = generator.normal(size=(400, 4)), generator.integers(4, size=400)
    distance = np.sqrt(2 * np.log(4)) + simulation.EXCESS
    inputs[np.arange(400), classes] += distance
    means = distance * np.eye(4)
    densities = np.exp(-((inputs[:, None] - means) ** 2).sum(axis=2) / 2)
    np.testing.assert_allclose(np.exp(log_posterior), densities / densities.sum(axis=1, keepdims=True))
    assert (log_posterior.argmax(axis=1) == classes).mean() > 0.8


def mixed(log_posterior):
    return 0.9 * np.exp(log_posterior) + 0.1 / 4


def two_temperatures(rest):
    parameters = {"top_temperature": 1.0, "rest_temperature": rest}
    record = {"method": "two-ts", "criterion": "nll", "parameters": parameters}
    return load_calibrator(record).predict_log_proba


UNDONE = {
    "nothing": lambda logits: logits,
    "temperature": lambda logits: log_psi(logits, 0.0, 2.0),
    "focal": lambda logits: log_psi(logits, 3.0),
    "negative_focal": lambda logits: log_psi(logits, -0.5),
    "flat_rest": two_temperatures(0.5),
}


@pytest.mark.parametrize("name", UNDONE)
def test_a_distortion_is_undone_by_the_map_that_contains_it(log_posterior, name):
    found = distorted(name, log_posterior)
    assert found.log_truth is log_posterior
    np.testing.assert_allclose(UNDONE[name](found.logits), log_posterior, atol=1e-9)


def test_the_other_distortions_by_hand(log_posterior):
    smooth, noisy = distorted("label_smoothing", log_posterior), distorted("label_noise", log_posterior)
    np.testing.assert_allclose(np.exp(smooth.logits), mixed(log_posterior))
    np.testing.assert_allclose(np.exp(noisy.log_truth), mixed(log_posterior))
    assert smooth.log_truth is noisy.logits is log_posterior
    sharp = distorted("sharp_rest", np.log([[0.6, 0.2, 0.1, 0.1]])).logits
    np.testing.assert_allclose(np.exp(sharp), [[0.6, 0.4 * 4 / 6, 0.4 / 6, 0.4 / 6]])
    bias = distorted("class_bias", log_posterior).logits - log_posterior
    np.testing.assert_allclose(bias, np.broadcast_to(bias[0], bias.shape))
    assert np.ptp(bias[0]) > 0.1


def test_every_distortion_is_tried():
    assert {*UNDONE, "label_smoothing", "label_noise", "sharp_rest", "class_bias"} == set(DISTORTIONS)


def test_large_cells_have_fewer_draws_and_slow_calibrators_few():
    assert [repetitions(*cell, 50) for cell in ((10, 500), (100, 2000), (1000, 10_000))] == [50, 12, 2]
    assert [applicable("fms", 10, number) for number in (0, 2, 3)] == [True, True, False]
    assert not applicable("fms", 11, 0)
    assert not applicable("platt", 3, 0)
    assert applicable("ts", 1000, 49)


SPEC = {
    "classes": [2, 5],
    "samples": [400],
    "repetitions": 12,
    "distortions": ["nothing", "focal"],
    "methods": ["none", "ts", "fts", "two-ts", "vs"],
    "seed": 1,
}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Return the rows of a quick simulation by distortion, classes and calibrator."""
    path = tmp_path_factory.mktemp("simulation") / "divergences.csv"
    simulate.main(["--spec", json.dumps(SPEC), "--table", str(path)])
    rows = read_rows(path)
    return {(row["distortion"], row["classes"], row["method"]): row for row in rows}


def test_right_logits_cost_what_a_fit_of_their_parameters_costs(table):
    assert float(table["nothing", "5", "none"]["divergence"]) == 0
    # 2 n KL is a chi-squared variable with one degree of freedom: over 12 draws its mean is 1 within 1.2.
    cost = 2 * 400 * float(table["nothing", "5", "ts"]["divergence"])
    assert 0.1 < cost < 2.2
    assert 2 * 400 * float(table["nothing", "5", "vs"]["divergence"]) > 4 * cost


def test_focal_scaling_finds_the_focal_minimiser_and_two_temperatures_say_why(table):
    by_method = {name: float(table["focal", "5", name]["divergence"]) for name in SPEC["methods"]}
    assert by_method["fts"] < 0.3 * by_method["ts"] < 0.3 * by_method["none"]
    assert by_method["two-ts"] < by_method["ts"]
    assert 1.5 < float(table["focal", "5", "fts"]["gamma"]) < 5
    two = table["focal", "5", "two-ts"]
    assert float(two["ratio"]) > 1.3
    assert two["judged"] == two["as_predicted"] == two["repetitions"] == "12"
    # With two classes there is no rest.
    assert (table["focal", "2", "two-ts"]["ratio"], table["focal", "2", "two-ts"]["judged"]) == ("1.0", "0")


def test_processes_change_no_number():
    small = SPEC | {"classes": [5], "repetitions": 2, "distortions": ["focal"], "methods": ["ts", "two-ts"]}
    assert divergences(small, processes=2) == divergences(small)


def test_a_calibrator_without_a_fit_is_counted():
    # Most of 200 classes have no sample among 60.
    few = SPEC | {"classes": [200], "samples": [60], "repetitions": 2, "distortions": ["nothing"]}
    (row,) = divergences(few | {"methods": ["vs"]})
    assert (row["repetitions"], row["failed"], row["divergence"], row["error"]) == (0, 2, None, None)
