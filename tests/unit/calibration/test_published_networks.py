"""Published networks: M20's printed cells to the last digit, and the searches on real logits."""

import numpy as np
import pytest

from focalcal.calibration import metrics
from focalcal.calibration.calibrators import FocalTemperatureScaling, Uncalibrated
from focalcal.calibration.catalogue import CRITERIA
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import K24_GAMMAS
from focalcal.calibration.methods.m20 import M20TemperatureScaling
from focalcal.calibration.scores.predictions import Predictions
from focalcal.data.networks import networks_of
from focalcal.reporting.records import published
from tests.published_networks import logits_of
from tests.unit.calibration.logit_sets import brute_force

M20 = {network.name: network for network in networks_of("mukhoti2020-cifar10")}
SEVERAL = ["mukhoti2020-cifar10/wrn-26-10-flsd-53", "mukhoti2020-cifar10/densenet121-brier"]


@pytest.fixture(scope="module")
def cells():
    return published.as_measured(published.unique_cells(published.load_results())).query("paper == 'M20'")


@pytest.mark.parametrize("name", M20)
def test_every_cell_that_m20_prints_of_a_network_comes_out(cells, name):
    """Error, ECE, AdaECE, log-loss and MCE, before and after T, with T as printed: nine cells per network."""
    network, run = M20[name], logits_of(name)
    calibrators = {
        ("none", ""): Uncalibrated(),
        **{("ts-m20", criterion): M20TemperatureScaling(criterion) for criterion in ("ece", "adaece")},
    }
    predictions = {
        fit: Predictions.from_logs(
            calibrator.fit(run.val.logits, run.val.labels).predict_log_proba(run.test.logits), run.test.labels
        )
        for fit, calibrator in calibrators.items()
    }
    printed = cells[(cells["dataset"] == network.dataset) & (cells["model"] == network.model)]
    printed = printed[printed["loss"] == network.loss]
    assert len(printed) == 9
    for cell in printed.itertuples():
        fit = (cell.method, cell.criterion)
        value = metrics.metric_value(cell.metric, predictions[fit], 15, "split")
        assert f"{100 * value:.2f}" == cell.printed, (fit, cell.metric)
        # Tables of log-loss and MCE do not repeat the temperature.
        if not np.isnan(cell.temperature):
            assert calibrators[fit].temperature_ == cell.temperature


def test_networks_of_kull_et_al_are_overconfident():
    """Their ResNet-110 has an error of 6.44 % and an ECE of 4.75 % on the official test images."""
    run = logits_of("kull2019-cifar10/resnet110-ce")
    probs = Uncalibrated().fit(run.val.logits, run.val.labels).predict_proba(run.test.logits)
    assert f"{100 * metrics.error(probs, run.test.labels):.2f}" == "6.44"
    assert f"{100 * metrics.ece(probs, run.test.labels):.2f}" == "4.75"
    assert M20TemperatureScaling().fit(run.val.logits, run.val.labels).temperature_ == 2.5


@pytest.mark.parametrize("name", [*SEVERAL, "kull2019-cifar10/densenet40-ce"])
def test_real_logits_equal_brute_force(name):
    run = logits_of(name)
    logits, labels = run.val.logits[:1500], run.val.labels[:1500]
    gammas, temperatures = [0.0, *K24_GAMMAS[::4]], [0.01, 0.1, 0.5, 1.0, 1.37, 2.5, 5.0]
    for adaece in ("split", "authors"):
        fast = Objective(logits, labels, adaece=adaece).surfaces(gammas, temperatures)
        slow = brute_force(logits.astype(np.float64), labels, gammas, temperatures, adaece=adaece)
        for criterion in CRITERIA:
            np.testing.assert_allclose(fast[criterion], slow[criterion], atol=1e-11)


@pytest.mark.parametrize("name", SEVERAL)
def test_the_exact_minimum_is_below_that_of_k24s_grid_on_real_logits(name):
    run = logits_of(name)
    grid = FocalTemperatureScaling(gammas=K24_GAMMAS).fit(run.val.logits, run.val.labels)
    smooth = FocalTemperatureScaling().fit(run.val.logits, run.val.labels)
    assert smooth.score_ <= grid.score_
