"""Ensembles, isotonic regression, top-versus-all, the adversary; and every method on extreme data."""

import warnings

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.isotonic import IsotonicRegression

from focalcal.calibration.calibrators import Context, TemperatureScaling, calibrator_class
from focalcal.calibration.catalogue import METHODS
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import NoMinimumError
from focalcal.calibration.methods.affine import LOWEST_LOG
from focalcal.calibration.methods.ensemble import EnsembleTemperatureScaling, best_weights
from focalcal.calibration.methods.isotonic import IsotonicCalibration, isotonic_bends
from focalcal.calibration.methods.top_label import ConstantConfidence, TopVersusAll, top_versus_all_loss
from focalcal.calibration.metrics import ece, nll
from focalcal.calibration.run import why_not_applicable
from tests.unit.calibration import peers
from tests.unit.calibration.logit_sets import SETS, like_a_network

LOGITS, LABELS = like_a_network(2000, 6, seed=80)
TEST_LOGITS, TEST_LABELS = like_a_network(2000, 6, seed=81)
GENERAL = [
    name for name, method in METHODS.items() if method.criteria == ("nll",) and method.most_classes != 2
]


def test_ensemble_weights_of_a_mixture_by_hand():
    # Member 1 gives each label 0.9 or 0.1, member 2 always 0.5: the best mixture predicts the share of hits.
    hits = np.array([0.9] * 7 + [0.1] * 3)
    weights, _ = best_weights(np.column_stack([hits, np.full(10, 0.5)]))
    np.testing.assert_allclose(weights, [0.5, 0.5], atol=1e-6)


def test_the_ensemble_is_that_of_probmetrics():
    ours = EnsembleTemperatureScaling().fit(LOGITS, LABELS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = peers.ETSCalibrator(loss="ce").fit(softmax(LOGITS, axis=1), LABELS)
    expected = peer.predict_proba(softmax(TEST_LOGITS, axis=1))
    np.testing.assert_allclose(ours.predict_proba(TEST_LOGITS), expected, atol=1e-3)
    assert sum(ours.parameters["weights"]) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("smoothed", [True, False])
def test_isotonic_regression_is_that_of_scikit_learn(smoothed):
    probs, test = (softmax(logits, axis=1).astype(np.float32) for logits in (LOGITS, TEST_LOGITS))
    columns = [
        IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        .fit(probs[:, i], i == LABELS)
        .predict(test[:, i])
        for i in range(6)
    ]
    expected = np.maximum(np.stack(columns, axis=1).astype(np.float64), np.exp(LOWEST_LOG))
    expected /= expected.sum(axis=1, keepdims=True)
    if smoothed:
        expected = (2000 * expected + 1 / 6) / 2001
    found = IsotonicCalibration(smoothed=smoothed).fit(LOGITS, LABELS).predict_proba(TEST_LOGITS)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("name", ["like a network", *SETS])
def test_isotonic_bends_are_those_of_scikit_learn_to_the_bit(name):
    logits, labels = SETS.get(name, (LOGITS, LABELS))
    for number, column in enumerate(softmax(np.asarray(logits), axis=1).astype(np.float32).T):
        peer = IsotonicRegression(y_min=0, y_max=1).fit(column, labels == number)
        thresholds, values = isotonic_bends(column, labels == number)
        np.testing.assert_array_equal(thresholds, peer.X_thresholds_, strict=True)
        np.testing.assert_array_equal(values, peer.y_thresholds_, strict=True)


def test_isotonic_regression_without_smoothing_has_a_finite_log_loss_of_zeros():
    labels = np.array([0, 1] * 20)
    logits = np.where(labels[:, None] == [0, 1], 2.0, 0.0)
    calibrator = IsotonicCalibration(smoothed=False).fit(logits, labels)
    assert calibrator.score(logits, 1 - labels) == pytest.approx(-LOWEST_LOG)
    smoothed = IsotonicCalibration().fit(logits, labels)
    assert smoothed.score(logits, 1 - labels) == pytest.approx(np.log(2 * 41))


def test_top_versus_all_by_hand():
    # Confidence 3/4 at temperature 1, right in three of four samples: that is the best temperature.
    logits = np.tile([np.log(6.0), 0.0, 0.0], (4, 1))
    labels = np.array([0, 0, 0, 1])
    binary = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    assert top_versus_all_loss(logits, labels, 1.0) == pytest.approx(binary, abs=1e-14)
    calibrator = TopVersusAll().fit(logits, labels)
    assert calibrator.temperature_ == pytest.approx(1.0, abs=1e-6)
    assert calibrator.score_ == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.125)), abs=1e-9)
    assert calibrator.boundaries_ == {}


def test_top_versus_all_is_temperature_scaling_for_two_classes():
    logits, labels = SETS["two classes"]
    ts = TemperatureScaling().fit(logits, labels)
    assert TopVersusAll().fit(logits, labels).temperature_ == pytest.approx(ts.temperature_, rel=1e-6)


def test_the_constant_confidence_by_hand():
    logits = np.array([[2.0, 0.0, 1.0]] * 10)
    labels = np.array([0] * 7 + [1] * 3)
    probs = ConstantConfidence().fit(logits, labels).predict_proba(logits[:1])
    np.testing.assert_allclose(probs, [[8 / 12, 2 / 12, 2 / 12]])
    hopeless = ConstantConfidence().fit(logits, np.ones(10, dtype=np.int64)).predict_proba(logits[:1])
    assert hopeless.argmax() == 0


def test_ece_ranks_the_adversary_first_and_log_loss_ranks_it_last():
    objective = Objective(LOGITS, LABELS)
    scores = {}
    for name in ["ts", "fts", *GENERAL]:
        calibrator = calibrator_class(name).from_context(Context("nll")).fit_objective(objective)
        probs = calibrator.predict_proba(TEST_LOGITS)
        scores[name] = ece(probs, TEST_LABELS), nll(probs, TEST_LABELS)
    assert len(scores) >= 12
    assert min(scores, key=lambda name: scores[name][0]) == "constant"
    assert max(scores, key=lambda name: scores[name][1]) == "constant"
    assert "Adversary" in METHODS["constant"].label


SEPARATED = {"like a network", "fewer samples than bins", "one sample", "all right", "one label"}
WITHOUT_ERRORS = {"fewer samples than bins", "one sample", "all right", "constant"}
WITHOUT_MINIMUM = {
    **dict.fromkeys(("vs", "ms", "fts-vs"), SEPARATED | {"all wrong"}),
    "dirichlet": SEPARATED,
    **dict.fromkeys(("two-ts", "ets", "tva"), WITHOUT_ERRORS),
}
"""Sets on which a method has no fit."""


@pytest.mark.parametrize("name", GENERAL)
@pytest.mark.parametrize("data", [name for name in SETS if name != "many classes"])
def test_extreme_data_give_finite_predictions(name, data):
    logits, labels = SETS[data]
    try:
        calibrator = calibrator_class(name)().fit(logits, labels)
    except NoMinimumError:
        assert data in WITHOUT_MINIMUM.get(name, ()), "all others have a penalty or few parameters"
        return
    for unseen in (logits, 1e6 * logits, np.full_like(logits, 1e300) * np.eye(*logits.shape)):
        logs = calibrator.predict_log_proba(unseen)
        assert np.isfinite(logs).all()
        np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1.0, atol=1e-9)
    assert np.isfinite(calibrator.score_)


def test_matrix_methods_say_above_how_many_classes_they_do_not_apply():
    run = {"loss": "ce", "gamma": None}
    assert why_not_applicable("sms", run, 200) == ""
    reason = "1000 classes; this method applies to at most 200"
    assert why_not_applicable("sms", run, 1000) == why_not_applicable("dirichlet", run, 1000) == reason
    assert why_not_applicable("ms", run, 100) == "100 classes; this method applies to at most 30"
    assert why_not_applicable("svs", run, 1000) == ""
    assert why_not_applicable("psi", run, 10).startswith("loss 'ce' is not focal loss")
