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
    log_focal_matrix,
    variance_scores,
)
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
    probs = np.exp(logs)
    features = probs if method.matrix else np.ones((len(logs), 1))
    free = np.array(method.free, dtype=float)

    def log_probabilities(point):
        log_common, gain, log_gamma = point[:3] * free
        v, weights = point[3 : 3 + classes], point[3 + classes :].reshape(classes, -1)
        scores = np.exp(log_common) * (1 + v) * logs + gain * probs + features @ weights.T
        return log_psi(scores, np.expm1(log_gamma))

    def minus_log_posterior(point):
        nll = -log_probabilities(point)[np.arange(len(LABELS)), LABELS].sum()
        v, weights = point[3 : 3 + classes], point[3 + classes :]
        prior = classes * np.sum(v**2) + np.sum(weights**2) * (1 if method.matrix else classes)
        return nll + prior / (2 * variance) + np.sum((point[:3] / [0.35, 2, 0.35]) ** 2) / 2

    size = 3 + classes + features.shape[1] * classes
    oracle = optimize.minimize(minus_log_posterior, np.zeros(size), method="BFGS", options={"gtol": 1e-4})
    np.testing.assert_allclose(
        np.exp(method().fit(LOGITS, LABELS).predict_log_proba(LOGITS)),
        np.exp(log_probabilities(oracle.x)),
        atol=2e-4,
    )


@pytest.mark.parametrize("name", ["moderate", "saturated", "many classes", "two classes", "huge"])
def test_a_tiny_variance_and_no_gain_are_focal_temperature_scaling(name, monkeypatch):
    monkeypatch.setattr(focal_matrix, "VARIANCES", (1e-12,))
    monkeypatch.setattr(focal_matrix, "DEVIATIONS", np.array([1.0, 1e-6, 0.5]))
    logits, labels = SETS[name]
    scaling = FocalMatrixScaling().fit(logits, labels)
    own = scaling.parameters
    expected = log_psi(logits, own["gamma"], own["temperature"] / own["slopes"].mean())
    np.testing.assert_allclose(scaling.predict_proba(logits), np.exp(expected), atol=1e-6)


def test_beyond_the_largest_gamma_only_the_prior_changes():
    problem = focal_matrix._Problem(FocalMatrixScaling, LOGITS, LABELS)
    values = [problem._loss(np.array([0.1, 0.2, log_gamma])) for log_gamma in (9.0, 10.0)]
    prior = (10.0**2 - 9.0**2) / 2 / 0.35**2 / len(LABELS)
    assert values[1][0] - values[0][0] == pytest.approx(prior)
    assert values[1][1][2] == pytest.approx(10.0 / 0.35**2 / len(LABELS))


def test_a_fold_sees_nothing_of_what_it_holds_out():
    held = stratified_folds(LABELS, FOLDS) == 0
    fold = focal_matrix._Fold(FocalMatrixScaling, LOGITS, LABELS, held)
    logits, labels = LOGITS.copy(), LABELS.copy()
    logits[held], labels[held] = -logits[held] * 7.0, (labels[held] + 1) % 3
    other = focal_matrix._Fold(FocalMatrixScaling, logits, labels, held)
    for variance in (0.03, 0.5):
        fold.losses(variance), other.losses(variance)
        predicted = [log_focal_matrix(LOGITS, **one.last.parameters) for one in (fold, other)]
        np.testing.assert_array_equal(*predicted)


def test_the_prior_of_the_variance_decides_with_few_samples():
    # Held-out losses fall by 0.01 nats per sample from one variance to the next. In standard deviations of
    # its log, the variances are 2 below the median, at it, 2 above it and 4: log(4) / 0.7 each, roughly.
    losses = np.linspace(1.0, 0.97, 4)[:, None]
    few, many = (variance_scores(losses * np.ones(count)) for count in (50, 2000))
    assert np.argmin(few) == 1
    assert np.argmin(many) == 3
    steps = (np.log([0.25, 1.0, 4.0, 0.5 / 0.03]) / 0.7) ** 2 / 2
    np.testing.assert_allclose(few, 50 * losses[:, 0] + steps, rtol=1e-12)


def test_a_known_map_is_recovered():
    rng = np.random.default_rng(2)
    classes = 3
    logits = 3.0 * rng.normal(size=(20_000, classes))
    matrix = 0.8 * rng.normal(size=(classes, classes))
    truth = log_focal_matrix(
        logits, gamma=1.0, temperature=1.5, gain=0.0, slopes=[1.1, 0.9, 1.0], weights=matrix
    )
    labels = (np.exp(truth).cumsum(axis=1) < rng.random((20_000, 1))).sum(axis=1).clip(max=classes - 1)
    scaling = FocalMatrixScaling().fit(logits[:10_000], labels[:10_000])
    predicted = scaling.predict_log_proba(logits[10_000:])
    divergence = np.sum(np.exp(truth[10_000:]) * (truth[10_000:] - predicted), axis=1).mean()
    assert divergence < 0.001


def test_above_two_hundred_classes_intercepts_take_the_place_of_the_matrix():
    logits, labels = noisy(500, 201, 2.0)
    parameters = FocalMatrixScaling().fit(logits, labels).parameters
    assert parameters["weights"].shape == (201, 1)


def test_few_samples_and_few_errors_leave_the_predictions_bounded():
    logits, labels = SETS["all right"]
    scaling = FocalMatrixScaling().fit(logits, labels)
    wrong = -scaling.predict_log_proba(logits)[np.arange(len(labels)), (labels + 1) % 6]
    assert wrong.max() < 20.0
