import numpy as np
import pytest
from scipy.stats import norm

from focalcal.calibration.calibrators import TemperatureScaling
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.methods.prior import PriorTemperatureScaling, penalised_loss
from focalcal.theory.psi import log_psi
from tests.unit.calibration.logit_sets import SETS, noisy


@pytest.mark.parametrize("name", SETS)
def test_the_loss_is_that_of_the_samples_of_half_a_sample_with_a_uniform_label_and_of_the_prior(name):
    logits, labels = SETS[name]
    for temperature in (0.3, 1.0, 7.0):
        logs = log_psi(logits, 0.0, temperature)
        expected = -logs[np.arange(len(labels)), labels].sum() - 0.5 * logs.mean()
        expected -= norm.logpdf(np.log(temperature), scale=0.5) - norm.logpdf(0, scale=0.5)
        assert penalised_loss(Objective(logits, labels), temperature) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["moderate", "many classes", "two classes", "all right", "one sample"])
def test_no_temperature_has_a_smaller_loss(name):
    logits, labels = SETS[name]
    objective = Objective(logits, labels)
    scaling = PriorTemperatureScaling().fit(logits, labels)
    grid = np.geomspace(1e-3, 1e3, 600)
    lowest = min(penalised_loss(objective, temperature) for temperature in grid)
    assert penalised_loss(objective, scaling.temperature_) <= lowest + 1e-9
    assert not scaling.boundaries_


def test_samples_without_an_error_leave_the_temperature_bounded():
    logits, labels = SETS["all right"]
    assert TemperatureScaling().fit(logits, labels).temperature_ < 0.01
    assert PriorTemperatureScaling().fit(logits, labels).temperature_ > 0.3


def test_logits_of_another_scale_get_their_temperature():
    logits, labels = noisy(10_000, 5, 1.0)
    scaled = [PriorTemperatureScaling().fit(factor * logits, labels).temperature_ for factor in (1.0, 50.0)]
    assert scaled[1] == pytest.approx(50.0 * scaled[0], rel=0.005)


def test_with_many_samples_it_is_temperature_scaling():
    logits, labels = noisy(20_000, 5, 2.0)
    assert PriorTemperatureScaling().fit(logits, labels).temperature_ == pytest.approx(
        TemperatureScaling().fit(logits, labels).temperature_, abs=0.006
    )
