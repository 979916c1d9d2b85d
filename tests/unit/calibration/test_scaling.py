"""Vector, matrix and Dirichlet scaling against probmetrics and against slow, obvious fits."""

import warnings

import numpy as np
import pytest
from scipy import optimize
from scipy.special import log_softmax, softmax

from focalcal.calibration.fitting.continuous import best_temperature
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import NoMinimumError
from focalcal.calibration.methods import affine
from focalcal.calibration.methods.affine import (
    LOWEST_LOG,
    Matrix,
    PerClass,
    fit_coefficients,
    log_probabilities,
    whitening,
)
from focalcal.calibration.methods.dirichlet import STRENGTHS, DirichletCalibration, odir_penalty
from focalcal.calibration.methods.scaling import (
    MatrixScaling,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    VectorScaling,
    neutral,
    structured_penalty,
)
from tests.unit.calibration import peers
from tests.unit.calibration.logit_sets import SETS, like_a_network, noisy

LOGITS, LABELS = like_a_network(800, 4, seed=60)
TEST_LOGITS, _ = like_a_network(300, 4, seed=61)
FAMILY = (
    VectorScaling,
    MatrixScaling,
    StructuredVectorScaling,
    StructuredMatrixScaling,
    DirichletCalibration,
)


def slow_minimum(features, penalty, centre, start):
    """The penalised log-loss at its minimum, by SciPy's BFGS with numerical gradients."""

    def loss(flat):
        coefficients = flat.reshape(start.shape)
        logs = log_softmax(features.scores(slice(None), coefficients), axis=1)
        own = np.sum(penalty * (coefficients - centre) ** 2)
        return -np.mean(logs[np.arange(len(LABELS)), LABELS]) + own

    found = optimize.minimize(loss, start.ravel(), method="BFGS", options={"gtol": 1e-6})
    return found.fun, found.x.reshape(start.shape)


@pytest.mark.parametrize("form", [PerClass, Matrix])
@pytest.mark.parametrize("strength", [0.0, 0.02])
def test_the_minimum_is_that_of_a_general_minimiser(form, strength):
    features = form(log_probabilities(LOGITS))
    start = neutral(features)
    penalty = np.full_like(start, strength)
    penalty[:, -1] *= 3.0
    found = fit_coefficients(features, LABELS, start, penalty, centre=start)
    expected, coefficients = slow_minimum(features, penalty, start, start)
    logs = log_softmax(features.scores(slice(None), found.coefficients), axis=1)
    value = -np.mean(logs[np.arange(len(LABELS)), LABELS]) + np.sum(
        penalty * (found.coefficients - start) ** 2
    )
    assert value == pytest.approx(expected, abs=1e-7)
    if strength:  # without a penalty, adding a vector to all rows changes nothing
        np.testing.assert_allclose(found.coefficients, coefficients, atol=2e-3)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (VectorScaling, peers.VectorScalingCalibrator),
        (MatrixScaling, peers.MatrixScalingCalibrator),
        (StructuredVectorScaling, peers.SVSCalibrator),
        (StructuredMatrixScaling, peers.SMSCalibrator),
    ],
)
def test_predictions_are_those_of_probmetrics(ours, theirs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = theirs().fit(softmax(LOGITS, axis=1), LABELS)
        expected = peer.predict_proba(softmax(TEST_LOGITS, axis=1))
    # probmetrics computes in float32, and its solver stops at a slope of 1e-5.
    np.testing.assert_allclose(ours().fit(LOGITS, LABELS).predict_proba(TEST_LOGITS), expected, atol=1e-3)


def test_the_temperature_is_where_the_slope_of_the_log_loss_vanishes():
    fit = best_temperature(Objective(LOGITS, LABELS))
    temperature = fit.parameters["temperature"]
    probs = softmax(LOGITS / temperature, axis=1)
    slope = np.mean(np.sum(probs * LOGITS, axis=1) - LOGITS[np.arange(len(LABELS)), LABELS])
    assert abs(slope) < 1e-6
    assert fit.boundaries == {}


def test_a_temperature_at_the_boundary_is_reported():
    logits, labels = SETS["all wrong"]
    assert best_temperature(Objective(logits, labels)).boundaries == {"temperature": "high"}
    assert StructuredVectorScaling().fit(logits, labels).boundaries_ == {"temperature": "high"}


def test_penalties_of_structured_scaling_by_hand():
    logs = np.zeros((100, 3))
    np.testing.assert_allclose(structured_penalty(PerClass(logs)), np.full((3, 2), 0.03))
    matrix = np.array([[0.03, 0.06, 0.06, 0.03], [0.06, 0.03, 0.06, 0.03], [0.06, 0.06, 0.03, 0.03]])
    np.testing.assert_allclose(structured_penalty(Matrix(logs)), matrix)


def test_the_penalty_of_dirichlet_calibration_by_hand():
    expected = np.array([[0.0, 1.0, 1.0, 2.0], [1.0, 0.0, 1.0, 2.0], [1.0, 1.0, 0.0, 2.0]])
    np.testing.assert_allclose(odir_penalty(3, 6.0), expected)


def test_a_strong_penalty_makes_dirichlet_calibration_a_slope_per_class():
    calibrator = DirichletCalibration().fit(LOGITS, LABELS)
    strength = calibrator.parameters["strength"]
    assert strength in STRENGTHS
    matrix = fit_coefficients(
        Matrix(log_probabilities(LOGITS)), LABELS, np.eye(4, 5), odir_penalty(4, 1e9)
    ).coefficients
    assert np.max(np.abs(matrix - np.diag(np.diag(matrix)) @ np.eye(4, 5))) < 1e-6
    assert MatrixScaling().fit(LOGITS, LABELS).score_ < calibrator.score_


def test_uniform_probabilities_mixed_in_by_hand():
    logs = log_probabilities([[0.0, np.log(3.0)]], uniform=0.2)
    np.testing.assert_allclose(np.exp(logs), [[0.8 * 0.25 + 0.1, 0.8 * 0.75 + 0.1]])
    assert log_probabilities([[0.0, 1e6]]).tolist() == [[LOWEST_LOG, 0.0]]


@pytest.mark.parametrize("kind", FAMILY)
def test_a_constant_added_to_the_logits_of_a_sample_changes_nothing(kind):
    calibrator = kind().fit(LOGITS, LABELS)
    shifted = TEST_LOGITS + np.arange(len(TEST_LOGITS))[:, None]
    expected = calibrator.predict_proba(TEST_LOGITS)
    np.testing.assert_allclose(calibrator.predict_proba(shifted), expected, atol=1e-10)


@pytest.mark.parametrize("kind", FAMILY)
def test_a_matrix_contains_temperature_scaling_and_never_loses_to_it_on_its_own_data(kind):
    objective = Objective(LOGITS, LABELS)
    assert kind().fit_objective(objective).score_ < best_temperature(objective).score + 1e-4


@pytest.mark.parametrize("kind", FAMILY)
def test_another_criterion_is_refused(kind):
    with pytest.raises(ValueError, match="criterion is 'ece'; this calibrator minimises only 'nll'"):
        kind(criterion="ece").fit(LOGITS, LABELS)


def test_logits_whose_features_are_all_alike_have_a_minimum():
    """Hessian blocks of tiny logits are indefinite after rounding to float32."""
    logits, labels = like_a_network(400, 10, seed=1)
    tiny, usual = (MatrixScaling().fit(scale * logits, labels) for scale in (1e-4, 1.0))
    # Scaling the logits changes the features of a matrix little beyond a factor.
    assert tiny.score_ == pytest.approx(usual.score_, abs=0.05)
    assert np.isfinite(tiny.predict_log_proba(logits)).all()


def test_a_hessian_that_is_not_positive_definite_has_no_minimum():
    with pytest.raises(NoMinimumError, match="not positive definite"):
        whitening(-np.eye(3)[None], np.zeros((1, 3)))


def test_dirichlet_calibration_needs_two_samples_of_each_class():
    labels = np.append(np.arange(100) % 2, 2)
    logits = np.zeros((101, 3))
    with pytest.raises(NoMinimumError, match="1 of 3 classes, such as class 2 with 1, have fewer than 2 sa"):
        DirichletCalibration().fit(logits, labels)


def test_a_class_without_samples_or_with_a_probability_that_separates_it_is_refused_at_once():
    logits, labels = noisy(400, 4, 1.0)
    logits[:, 3] = np.where(labels == 3, 5.0, -5.0)
    for given in (labels, np.minimum(labels, 2)):
        with pytest.raises(NoMinimumError, match="1 of 4 classes, such as class 3, have no samples or are"):
            VectorScaling().fit(logits, given)
    assert np.isfinite(StructuredVectorScaling().fit(logits, labels).score_)


def test_samples_that_a_matrix_separates_are_refused_after_few_steps(monkeypatch):
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(12, 10)), np.arange(12) % 10
    monkeypatch.setattr(affine, "LARGEST_STEP_COUNT", 100)
    with pytest.raises(NoMinimumError, match="every sample can be given a probability above 1/2"):
        MatrixScaling().fit(logits, labels)
