import numpy as np

from focalcal.calibration.calibrators import FocalTemperatureScaling, TemperatureScaling
from focalcal.calibration.fitting.search import K24_TEMPERATURES
from focalcal.calibration.methods.k24 import K24FocalTemperatureScaling
from focalcal.theory.psi import log_psi
from tests.unit.calibration.logit_sets import like_a_network

LOGITS, LABELS = like_a_network(300, 4, seed=60)
GAMMAS = (-0.5, 0.5, 1.0)


def test_gamma_is_chosen_by_ece_and_t_by_log_loss():
    found = K24FocalTemperatureScaling(gammas=GAMMAS).fit(LOGITS, LABELS)
    by_ece = FocalTemperatureScaling("adaece", gammas=GAMMAS).fit(LOGITS, LABELS)
    by_log_loss = FocalTemperatureScaling("nll", gammas=(by_ece.gamma_,)).fit(LOGITS, LABELS)
    assert (found.gamma_, found.temperature_) == (by_ece.gamma_, by_log_loss.temperature_)
    assert found.temperature_ != by_ece.temperature_
    log_probs = log_psi(LOGITS, found.gamma_, found.temperature_)
    np.testing.assert_allclose(found.score_, -log_probs[np.arange(300), LABELS].mean(), rtol=1e-12)


def test_boundaries_are_those_of_both_searches():
    found = K24FocalTemperatureScaling(gammas=GAMMAS, temperatures=(0.1, 0.2)).fit(LOGITS, LABELS)
    assert set(found.fit_.boundaries) == {"gamma", "temperature"}
    assert found.gamma_ in (GAMMAS[0], GAMMAS[-1])


def test_without_gamma_it_is_temperature_scaling():
    found = K24FocalTemperatureScaling(gammas=(0.0,)).fit(LOGITS, LABELS)
    assert found.temperature_ == TemperatureScaling("nll", K24_TEMPERATURES).fit(LOGITS, LABELS).temperature_
