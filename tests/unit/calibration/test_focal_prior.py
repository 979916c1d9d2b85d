import numpy as np
import pytest

from focalcal.calibration.methods.focal_prior import PriorFocalTemperatureScaling
from focalcal.theory.psi import log_psi
from tests.unit.calibration.logit_sets import SETS, noisy


@pytest.mark.parametrize("name", [name for name in SETS if name not in {"constant", "huge"}])
def test_no_gamma_and_temperature_have_a_higher_posterior(name):
    logits, labels = SETS[name]
    lead = np.mean(logits.max(axis=1, keepdims=True) - logits)

    def minus_log_posterior(gamma, temperature):
        nll = -log_psi(logits, gamma, temperature)[np.arange(len(labels)), labels].sum()
        return nll + 0.5 * lead / temperature + np.log1p(gamma) ** 2 / (2 * 0.5**2)

    scaling = PriorFocalTemperatureScaling().fit(logits, labels)
    found = minus_log_posterior(scaling.gamma_, scaling.temperature_)
    factors = np.geomspace(0.1, 10.0, 41)
    gammas = np.expm1(np.linspace(np.log(0.05), np.log(20.0), 41))
    lowest = min(
        minus_log_posterior(gamma, factor * scaling.temperature_) for gamma in gammas for factor in factors
    )
    assert found <= lowest + 1e-4 * abs(lowest)


def test_the_priors_of_the_focal_map_do_not_depend_on_the_scale_of_the_logits():
    logits, labels = noisy(60, 5, 1.0)
    one, fifty = (PriorFocalTemperatureScaling().fit(factor * logits, labels) for factor in (1.0, 50.0))
    assert fifty.temperature_ == pytest.approx(50.0 * one.temperature_, rel=1e-3)
    assert fifty.gamma_ == pytest.approx(one.gamma_, abs=1e-3)


def test_logits_that_say_nothing_have_a_fit():
    logits, labels = SETS["constant"]
    predicted = PriorFocalTemperatureScaling().fit(logits, labels).predict_proba(logits)
    np.testing.assert_allclose(predicted, 0.2, atol=1e-12)
