"""Calibrators of two classes against scikit-learn and a slow general minimiser."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from focalcal.calibration import saved
from focalcal.calibration.methods.scaling import VectorScaling
from focalcal.calibration.methods.two_classes import BetaCalibration, PlattScaling
from focalcal.calibration.recommend import fitted_size
from focalcal.calibration.run import why_not_applicable
from focalcal.torch import CalibratorModule
from tests.unit.calibration.logit_sets import SETS, noisy

LOGITS, LABELS = noisy(3000, 2, 2.5, seed=90)
LOGITS[:, 1] += 0.8


def test_platt_scaling_is_that_of_scikit_learn():
    generator = np.random.default_rng(1)
    labels = generator.integers(0, 2, 800)
    features = generator.normal(size=(800, 2)) + labels[:, None]
    model = LogisticRegression(C=1e4).fit(features[:50], labels[:50])
    peer = CalibratedClassifierCV(FrozenEstimator(model), method="sigmoid", ensemble=False).fit(
        features, labels
    )
    margin = model.decision_function(features)
    ours = PlattScaling().fit(np.column_stack([np.zeros(800), margin]), labels)
    expected = peer.predict_proba(features)
    np.testing.assert_allclose(
        ours.predict_proba(np.column_stack([np.zeros(800), margin])), expected, atol=1e-5
    )


def test_beta_calibration_is_the_minimum_of_its_smoothed_loss():
    ours = BetaCalibration().fit(LOGITS, LABELS)
    probs = expit(LOGITS[:, 1] - LOGITS[:, 0])
    ones = LABELS.sum()
    targets = np.where(LABELS == 1, (ones + 1) / (ones + 2), 1 / (len(LABELS) - ones + 2))

    def loss(point):
        a, b, c = point
        score = abs(a) * np.log(probs) - abs(b) * np.log(1 - probs) + c
        return -np.mean(targets * np.log(expit(score)) + (1 - targets) * np.log(expit(-score)))

    slow = minimize(loss, [0.5, 0.7, 0.1], method="Nelder-Mead", options={"fatol": 1e-14, "xatol": 1e-9})
    (b, zero), (a, c) = ours.parameters["coefficients"]
    np.testing.assert_allclose([a, b, c, zero], [*np.abs(slow.x[:2]), slow.x[2], 0.0], atol=1e-5)


def test_with_many_samples_beta_calibration_is_vector_scaling():
    beta, vector = (kind().fit(LOGITS, LABELS) for kind in (BetaCalibration, VectorScaling))
    np.testing.assert_allclose(beta.predict_proba(LOGITS), vector.predict_proba(LOGITS), atol=5e-3)
    assert vector.score_ <= beta.score_ <= vector.score_ + 1e-4


def test_a_slope_of_beta_calibration_is_not_negative():
    calibrator = BetaCalibration().fit(LOGITS, 1 - LABELS)
    assert np.min(np.asarray(calibrator.parameters["coefficients"])[:, 0]) == 0.0
    assert calibrator.boundaries_ == {"coefficients": "low"}


@pytest.mark.parametrize("kind", [PlattScaling, BetaCalibration])
@pytest.mark.parametrize(
    ("logits", "labels"),
    [
        SETS["two classes"],
        (np.array([[0.0, 5.0], [5.0, 0.0]]), np.array([1, 0])),
        (np.array([[0.0, 1.0]]), np.array([0])),
        (np.full((9, 2), 3.0), np.arange(9) % 2),
        (1e6 * LOGITS, LABELS),
        (1e-6 * LOGITS, LABELS),
    ],
)
def test_extreme_data_give_finite_predictions(kind, logits, labels):
    calibrator = kind().fit(logits, labels)
    for unseen in (logits, 1e6 * logits, np.full_like(logits, 1e300) * np.eye(len(logits), 2)):
        logs = calibrator.predict_log_proba(unseen)
        assert np.isfinite(logs).all()
        np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1.0, atol=1e-9)


@pytest.mark.parametrize("kind", [PlattScaling, BetaCalibration])
def test_saved_calibrators_and_torch_modules_predict_the_same(kind, tmp_path):
    calibrator = kind().fit(LOGITS, LABELS)
    expected = calibrator.predict_log_proba(LOGITS)
    saved.save(calibrator, tmp_path / "a.json")
    assert np.array_equal(saved.load(tmp_path / "a.json").predict_log_proba(LOGITS), expected)
    module = CalibratorModule.from_saved(calibrator)
    np.testing.assert_allclose(module(torch.tensor(LOGITS)), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("method", "size"), [(PlattScaling, 2), (BetaCalibration, 3)])
def test_they_have_a_slope_for_the_margin_or_for_each_class_and_one_intercept(method, size):
    assert fitted_size(method().fit(*SETS["two classes"])) == size


def test_they_apply_to_two_classes():
    run = {"loss": "ce", "gamma": None}
    assert why_not_applicable("platt", run, 2) == why_not_applicable("beta", run, 2) == ""
    assert why_not_applicable("platt", run, 3) == "3 classes; this method applies to at most 2"
    with pytest.raises(ValueError, match="logits has 3 classes; this calibrator applies to 2"):
        PlattScaling().fit(np.eye(3), np.arange(3))
