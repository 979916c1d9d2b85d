import mpmath
import numpy as np
import pytest

from focalcal.calibration.calibrators import load_calibrator
from focalcal.calibration.fitting.continuous import best_temperature
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import NoMinimumError
from focalcal.calibration.methods.two_temperatures import TwoTemperatureScaling
from focalcal.theory.psi import log_psi
from tests.unit.calibration.logit_sets import SETS, like_a_network, noisy

WITHOUT_MINIMUM = {"fewer samples than bins", "one sample", "all right", "constant"}


def with_temperatures(top, rest):
    parameters = {"top_temperature": top, "rest_temperature": rest}
    return load_calibrator({"method": "two-ts", "criterion": "nll", "parameters": parameters})


@pytest.mark.parametrize(("top", "rest"), [(1.0, 1.0), (0.01, 3.0), (7.0, 0.2), (1e-4, 1e4)])
@pytest.mark.parametrize("row", [[0.3, -1.2, 0.2], [800.0, 0.0, -3.0], [5.0, 5.0, -1e4], [1e-9, 0.0, -1e-9]])
def test_log_probabilities_are_those_of_mpmath(row, top, rest):
    with mpmath.workdps(400):
        z, best = [mpmath.mpf(value) for value in row], int(np.argmax(row))
        others = [i for i in range(3) if i != best]
        of_top = mpmath.exp(z[best] / top) / mpmath.fsum(mpmath.exp(value / top) for value in z)
        of_rest = mpmath.fsum(mpmath.exp(z[i] / top) for i in others) / mpmath.fsum(
            mpmath.exp(value / top) for value in z
        )
        shares = {
            i: mpmath.exp(z[i] / rest) / mpmath.fsum(mpmath.exp(z[j] / rest) for j in others) for i in others
        }
        expected = [float(mpmath.log(of_top if i == best else of_rest * shares[i])) for i in range(3)]
    found = with_temperatures(top, rest).predict_log_proba(np.array([row]))[0]
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-300)


def test_equal_temperatures_are_temperature_scaling():
    logits, _ = like_a_network(200, 7, seed=3)
    expected = log_psi(logits, 0.0, 1.7)
    np.testing.assert_allclose(with_temperatures(1.7, 1.7).predict_log_proba(logits), expected, atol=1e-11)


@pytest.mark.parametrize("name", sorted(SETS.keys() - WITHOUT_MINIMUM))
def test_it_never_has_a_higher_log_loss_than_temperature_scaling_on_the_data_fitted_to(name):
    logits, labels = SETS[name]
    scaling = TwoTemperatureScaling().fit(logits, labels)
    assert scaling.score_ <= best_temperature(Objective(logits, labels)).score * (1 + 1e-6) + 1e-9


def test_each_temperature_is_found_where_labels_are_drawn_from_the_map():
    logits, _ = noisy(40_000, 5, 1.0)
    truth = with_temperatures(0.8, 2.0).predict_proba(logits)
    labels = (truth.cumsum(axis=1) < np.random.default_rng(1).random((len(truth), 1))).sum(axis=1)
    parameters = TwoTemperatureScaling().fit(logits, labels).parameters
    assert parameters["top_temperature"] == pytest.approx(0.8, rel=0.03)
    assert parameters["rest_temperature"] == pytest.approx(2.0, rel=0.05)


def test_the_top_class_may_change_and_then_only_to_the_second():
    logits = np.array([[1.0, 0.9, -5.0, -5.0]])
    assert with_temperatures(5.0, 0.1).predict_proba(logits).argmax() == 1
    assert with_temperatures(0.5, 2.0).predict_proba(logits).argmax() == 0


@pytest.mark.parametrize("name", sorted(WITHOUT_MINIMUM))
def test_where_a_temperature_goes_to_zero_there_is_no_fit(name):
    with pytest.raises(NoMinimumError, match="no minimum at a temperature above 0, since too few"):
        TwoTemperatureScaling().fit(*SETS[name])


def test_a_second_class_that_is_right_in_all_errors_has_no_best_temperature_among_the_rest():
    logits = np.log([[6.0, 3.0, 1.0]] * 10)
    with pytest.raises(NoMinimumError, match="no minimum"):
        TwoTemperatureScaling().fit(logits, [0] * 6 + [1] * 4)
