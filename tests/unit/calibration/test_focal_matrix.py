"""Focal matrix scaling: its kernel, its minimum by a slow oracle, its limits, and what its folds see."""

import numpy as np
import pytest
from scipy import optimize

from focalcal.calibration.fitting.folds import stratified_folds
from focalcal.calibration.kernels.compiled import focal_map_kernel
from focalcal.calibration.methods import focal_matrix
from focalcal.calibration.methods.focal_matrix import (
    FOLDS,
    CrossValidatedMatrixScaling,
    CrossValidatedVectorScaling,
    FocalMatrixScaling,
    chosen_variance,
    log_focal_matrix,
)
from focalcal.calibration.methods.focal_prior import PriorFocalTemperatureScaling
from focalcal.calibration.methods.focal_vector import focal_map_loss
from focalcal.theory.psi import log_psi
from tests.unit.calibration.logit_sets import SETS, like_a_network, noisy

LOGITS, LABELS = like_a_network(300, 3, seed=90)


def test_the_gradient_of_a_saturated_row_by_its_limit():
    # Two classes, a gap g to a misclassified label: the log-loss tends to (gamma + 1) g - log(gamma + 1).
    scores = np.array([[3000.0, 0.0]])
    loss, by_gamma = focal_map_kernel()(scores, np.array([1]), 2.0)
    assert loss == pytest.approx(9000.0 - np.log(3.0), rel=1e-12)
    assert by_gamma == pytest.approx(3000.0 - 1 / 3, rel=1e-12)
    np.testing.assert_allclose(scores, [[3.0, -3.0]], rtol=1e-12)


@pytest.mark.parametrize("gamma", [-0.95, -0.3, 0.0, 0.7, 100.0])
@pytest.mark.parametrize("name", SETS)
def test_the_kernel_has_the_loss_and_gradient_of_the_focal_map(name, gamma):
    scores, labels = SETS[name]
    gradient = scores.copy()
    loss, by_gamma = focal_map_kernel()(gradient, labels, gamma)
    expected = -log_psi(scores, gamma)[np.arange(len(labels)), labels].sum()
    assert loss == pytest.approx(expected, rel=1e-11)
    if name == "huge":  # the oracle of the gradient does not reach that far
        assert np.isfinite(gradient).all()
        return
    _, by_scores, slope = focal_map_loss(scores.copy(), labels, np.array([gamma]))
    np.testing.assert_allclose(gradient, by_scores, rtol=1e-9, atol=1e-9)
    assert by_gamma == pytest.approx(slope[0], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    "method", [FocalMatrixScaling, CrossValidatedMatrixScaling, CrossValidatedVectorScaling]
)
def test_no_other_coefficients_have_a_higher_posterior(method, monkeypatch):
    # The oracle: the posterior written down from `log_psi`, minimised by differences.
    variance = 0.5
    monkeypatch.setattr(focal_matrix, "VARIANCES", (variance,))
    monkeypatch.setattr(focal_matrix, "LEAST_DECREASE", 1e-12)
    fit = method().fit(LOGITS, LABELS).parameters
    temperature, classes = fit["temperature"], LOGITS.shape[1]
    logs = log_psi(LOGITS, 0.0, temperature)
    features = np.exp(logs) if method.matrix else np.ones((len(logs), 1))

    def minus_log_posterior(point):
        common, log_gamma = point[:2]
        log_gamma = log_gamma if method.focal else 0.0
        v, weights = point[2 : 2 + classes], point[2 + classes :].reshape(classes, -1)
        scores = np.exp(common) * (1 + v) * logs + features @ weights.T
        nll = -log_psi(scores, np.expm1(log_gamma))[np.arange(len(LABELS)), LABELS].sum()
        of_weights = np.sum(weights**2) * (1 if method.matrix else classes)
        prior = classes * np.sum(v**2) + of_weights
        return nll + prior / (2 * variance) + common**2 / 2 + log_gamma**2 / (2 * 0.5**2)

    size = 2 + classes + features.shape[1] * classes
    oracle = optimize.minimize(minus_log_posterior, np.zeros(size), method="BFGS", options={"gtol": 1e-4})
    expected = log_focal_matrix(
        LOGITS,
        np.expm1(oracle.x[1]) if method.focal else 0.0,
        temperature,
        np.exp(oracle.x[0]) * (1 + oracle.x[2 : 2 + classes]),
        oracle.x[2 + classes :].reshape(classes, -1),
    )
    np.testing.assert_allclose(
        np.exp(method().fit(LOGITS, LABELS).predict_log_proba(LOGITS)), np.exp(expected), atol=2e-4
    )


@pytest.mark.parametrize("name", ["moderate", "saturated", "many classes", "two classes", "huge"])
def test_variance_zero_is_focal_temperature_scaling(name, monkeypatch):
    monkeypatch.setattr(focal_matrix, "VARIANCES", (0.0,))
    logits, labels = SETS[name]
    scaling = FocalMatrixScaling().fit(logits, labels)
    focal = PriorFocalTemperatureScaling().fit(logits, labels)
    unseen = 100.0 * logits
    expected = focal.predict_log_proba(unseen)
    np.testing.assert_allclose(scaling.predict_log_proba(unseen), expected, rtol=1e-11, atol=1e-11)


def test_a_fold_sees_nothing_of_what_it_holds_out():
    held = stratified_folds(LABELS, FOLDS) == 0
    fold = focal_matrix._Fold(LOGITS, LABELS, held, focal=True, matrix=True)
    logits, labels = LOGITS.copy(), LABELS.copy()
    logits[held], labels[held] = -logits[held] * 7.0, (labels[held] + 1) % 3
    other = focal_matrix._Fold(logits, labels, held, focal=True, matrix=True)
    for variance in (0.0, 0.05, 0.5):
        fold.losses(variance), other.losses(variance)
        np.testing.assert_array_equal(
            fold._last.log_probabilities(LOGITS), other._last.log_probabilities(LOGITS)
        )


def test_the_smallest_variance_within_the_standard_error_is_chosen():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=400)
    noise -= noise.mean()
    base = rng.normal(size=400)
    # Means 0.2, 0.04, 0; the paired differences have a standard error of 0.05.
    losses = np.array([base + 0.2 + noise / noise.std(), base + 0.04 + noise / noise.std(), base])
    assert chosen_variance(losses) == 1
    assert chosen_variance(losses[:1]) == 0


def test_a_known_map_is_recovered():
    rng = np.random.default_rng(2)
    classes = 3
    logits = 3.0 * rng.normal(size=(20_000, classes))
    matrix = 0.8 * rng.normal(size=(classes, classes))
    truth = log_focal_matrix(logits, 1.0, 1.5, np.array([1.1, 0.9, 1.0]), matrix)
    labels = (np.exp(truth).cumsum(axis=1) < rng.random((20_000, 1))).sum(axis=1).clip(max=classes - 1)
    scaling = FocalMatrixScaling().fit(logits[:10_000], labels[:10_000])
    predicted = scaling.predict_log_proba(logits[10_000:])
    divergence = np.sum(np.exp(truth[10_000:]) * (truth[10_000:] - predicted), axis=1).mean()
    assert divergence < 0.001
    assert scaling.parameters["variance"] > 0


def test_above_two_hundred_classes_intercepts_take_the_place_of_the_matrix():
    logits, labels = noisy(500, 201, 2.0)
    parameters = FocalMatrixScaling().fit(logits, labels).parameters
    assert "matrix" not in parameters
    assert parameters["intercepts"].shape == (201,)


def test_few_samples_and_few_errors_leave_the_predictions_bounded():
    logits, labels = SETS["all right"]
    scaling = FocalMatrixScaling().fit(logits, labels)
    wrong = -scaling.predict_log_proba(logits)[np.arange(len(labels)), (labels + 1) % 6]
    assert wrong.max() < 20.0
