"""The focal map of vector scaling: its gradient, and what it contains as special cases."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from focalcal.calibration.calibrators import FocalTemperatureScaling
from focalcal.calibration.fitting.continuous import GAMMA_RANGE
from focalcal.calibration.methods.affine import LOWEST_LOG, softmax_loss
from focalcal.calibration.methods.focal_vector import (
    FocalVectorScaling,
    StructuredFocalVectorScaling,
    focal_map_loss,
)
from focalcal.calibration.methods.scaling import StructuredVectorScaling, VectorScaling
from focalcal.theory.psi import log_psi
from tests.unit.calibration.logit_sets import SETS, like_a_network

LOGITS, LABELS = like_a_network(800, 4, seed=70)
SCORES = ["moderate", "two classes", "three classes", "like a network", "saturated", "flat"]


@pytest.mark.parametrize("gamma", [-0.9, -0.3, 0.0, 0.7, 5.0])
@pytest.mark.parametrize("name", SCORES)
def test_the_loss_is_that_of_the_focal_map(name, gamma):
    scores, labels = SETS[name]
    expected = -log_psi(scores, gamma)[np.arange(len(labels)), labels].sum()
    assert focal_map_loss(scores.copy(), labels, np.array([gamma]))[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("gamma", [-0.9, -0.3, 0.7, 5.0])
@pytest.mark.parametrize("name", ["moderate", "two classes", "three classes"])
def test_the_gradient_is_that_of_finite_differences(name, gamma):
    scores, labels = (array[:20] for array in SETS[name])
    _, by_scores, by_gamma = focal_map_loss(scores.copy(), labels, np.array([gamma]))

    def loss(flat):
        return focal_map_loss(flat[1:].reshape(scores.shape).copy(), labels, flat[:1])[0]

    numeric = approx_fprime(np.concatenate([[gamma], scores.ravel()]), loss, 1e-6)
    np.testing.assert_allclose(np.concatenate([by_gamma, by_scores.ravel()]), numeric, atol=2e-3, rtol=1e-4)


def test_the_gradient_of_a_saturated_softmax_by_its_limit():
    # With two classes and a gap g to a misclassified label, the log-loss tends to (gamma + 1) g + constant.
    _, by_scores, _ = focal_map_loss(np.array([[300.0, 0.0]]), np.array([1]), np.array([2.0]))
    np.testing.assert_allclose(by_scores, [[3.0, -3.0]], rtol=1e-10)


def test_gamma_zero_is_the_softmax():
    scores, labels = SETS["moderate"]
    value, gradient, _ = focal_map_loss(scores.copy(), labels, np.zeros(1))
    expected, residuals, _ = softmax_loss(scores.copy(), labels, np.empty(0))
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, residuals, atol=1e-12)


@pytest.mark.parametrize(
    ("focal", "plain"),
    [(FocalVectorScaling, VectorScaling), (StructuredFocalVectorScaling, StructuredVectorScaling)],
)
def test_it_beats_both_of_its_parts_on_the_data_fitted_to(focal, plain):
    both = focal().fit(LOGITS, LABELS)
    assert both.score_ < plain().fit(LOGITS, LABELS).score_ + 1e-6
    assert both.score_ < FocalTemperatureScaling().fit(LOGITS, LABELS).score_ + 1e-4


def test_predictions_by_hand():
    calibrator = FocalVectorScaling().fit(LOGITS, LABELS)
    slope, intercept = np.asarray(calibrator.parameters["coefficients"]).T
    logs = np.maximum(log_psi(LOGITS, 0.0), LOWEST_LOG)
    expected = log_psi(logs * slope + intercept, calibrator.parameters["gamma"])
    np.testing.assert_allclose(calibrator.predict_log_proba(LOGITS), expected, atol=1e-9)


def test_gamma_stays_within_its_range_and_says_so():
    """Two classes whose margins say nothing: the flatter the map, the better."""
    labels = np.array([0, 1] * 20)
    logits = np.array([[4.0, 0.0], [3.0, 0.0]] * 20)
    calibrator = StructuredFocalVectorScaling().fit(logits, labels)
    assert calibrator.parameters["gamma"] in GAMMA_RANGE
    assert set(calibrator.boundaries_) == {"gamma"}
