"""The gate for arrays: what no public function takes, and what the message says."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB

from focalcal import CalibratedClassifier, recommend
from focalcal.calibration import metrics
from focalcal.calibration.calibrators import Context, calibrator_class
from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.calibration.metrics import metric_value
from focalcal.calibration.scores.predictions import Predictions
from focalcal.common.arrays import finite_array, label_vector, logit_matrix, matrix, real_array
from focalcal.theory import proper, psi
from tests.unit.calibration.logit_sets import like_a_network

LOGITS, LABELS = like_a_network(60, 4, seed=5)
PROBS = psi.psi(np.exp(psi.log_psi(LOGITS, 0.0)), 0.0)
MASKED = np.ma.masked_array(LOGITS, np.eye(60, 4, dtype=bool))
BAD_MATRICES = {
    "masked": (MASKED, "has masked entries; allowed: numbers"),
    "masked rows": (list(MASKED), "has masked entries"),
    "ragged": ([[0.1, 0.9], [1.0]], "is no array .*allowed: rows of equal length"),
    "complex": (LOGITS * 1j, "has dtype complex128; allowed: real numbers, not complex"),
    "text": (LOGITS.astype(str), "has dtype <U32; allowed: real numbers, not text"),
    "booleans": (LOGITS > 0, "has dtype bool; allowed: real numbers, not booleans"),
    "objects": (LOGITS.astype(object), "has dtype object; allowed: real numbers, not objects"),
    "dates": (LOGITS.astype("M8[s]"), "has dtype datetime64.*.*; allowed: real numbers, not dates"),
    "none": (None, "has dtype object"),
    "vector": (LOGITS[:, 0], r"has shape \(60,\); allowed: \(n, k\)"),
    "cube": (LOGITS[None], r"has shape \(1, 60, 4\); allowed: \(n, k\)"),
    "one class": (LOGITS[:, :1], r"has shape \(60, 1\); allowed: \(n, k\)"),
    "nan": (np.where(np.eye(60, 4), np.nan, PROBS), r"\[0, 0\] is nan; allowed: finite numbers"),
    "infinite": (np.where(np.eye(60, 4), -np.inf, PROBS), r"\[0, 0\] is -inf; allowed: finite numbers"),
}
BAD_LABELS = {
    "masked": (np.ma.masked_array(LABELS, LABELS == 1), "labels has masked entries"),
    "ragged": ([[0], [1, 2]], "labels is no array"),
    "text": (LABELS.astype(str), "labels has dtype <U21; allowed: integers 0..3"),
    "booleans": (LABELS > 0, "labels has dtype bool; allowed: integers 0..3"),
    "fractions": (LABELS + 0.5, "labels has dtype float64; allowed: integers 0..3"),
    "one-hot": (np.eye(4, dtype=int)[LABELS], r"shape \(60, 4\).*take labels.argmax\(axis=1\)"),
    "from 1": (LABELS + 1, "from 1 to 4; allowed: integers 0..3, the columns; subtract 1"),
    "negative": (LABELS - 1, "from -1 to 2; allowed: integers 0..3"),
    "too few": (LABELS[:50], r"labels has shape \(50,\); allowed: \(60,\)"),
}


def fitted(name):
    own = METHODS[name].criteria
    criterion = "nll" if own is None else (own or (None,))[0]
    classes = min(METHODS[name].most_classes or 4, 4)
    context = Context(criterion, 2.0, (-0.5, 0.5), np.array([0.5, 1.0, 2.0]))
    return calibrator_class(name).from_context(context).fit(LOGITS[:, :classes], LABELS % classes)


def takers():
    """Yield each public function that takes a matrix, and the name that it has there."""
    fts = calibrator_class("fts")
    yield "logits", lambda values: fts("ece", [0.5], [1.0]).fit(values, LABELS)
    yield "val_logits", lambda values: recommend(values, LABELS, methods=["ts"])
    yield "logits", lambda values: psi.log_psi(values, 1.0)
    yield "log_eta", lambda values: psi.log_psi_inverse(values, 1.0)
    yield "probs", lambda values: psi.psi(values, 1.0)
    yield "eta", lambda values: psi.psi_inverse(values, 1.0)
    yield "q", lambda values: proper.conditional_risk(values, PROBS, 1.0)
    yield "posterior", lambda values: proper.conditional_risk(PROBS, values, 1.0)
    for name in METRICS:
        yield "probs", lambda values, name=name: getattr(metrics, name)(values, LABELS)


@pytest.mark.parametrize("kind", BAD_MATRICES)
def test_no_public_function_takes_a_bad_matrix(kind):
    values, message = BAD_MATRICES[kind]
    for name, take in takers():
        # Imported files have their own gate, whose messages name the repair in files.
        expected = message if name != "val_logits" or "masked" in kind else ""
        with pytest.raises(ValueError, match=f"{name}.*{expected}") as refused:
            take(values)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", METHODS)
def test_no_calibrator_predicts_from_a_bad_matrix_or_for_other_classes(name):
    calibrator = fitted(name)
    classes = calibrator.n_features_in_
    for values, message in BAD_MATRICES.values():
        for call in (calibrator.predict, calibrator.predict_proba, calibrator.predict_log_proba):
            with pytest.raises(ValueError, match=f"^logits( ?{message}| has 4 classes; allowed: 2)"):
                call(values)
    for other in {2, 3, 5} - {classes}:
        with pytest.raises(ValueError, match=f"logits has {other} classes; allowed: {classes}, as in what"):
            calibrator.predict_proba(np.zeros((2, other)))
    assert calibrator.predict_proba(np.zeros((0, classes))).shape == (0, classes)
    assert calibrator.predict(np.zeros((1, classes), dtype=np.int8)).shape == (1,)


@pytest.mark.parametrize("kind", BAD_LABELS)
def test_no_public_function_takes_bad_labels(kind):
    labels, message = BAD_LABELS[kind]
    for take in (
        lambda: calibrator_class("ts")("ece", [1.0]).fit(LOGITS, labels),
        lambda: fitted("ts-focal").score(LOGITS, labels),
        lambda: metrics.nll(PROBS, labels),
        lambda: metrics.ece(Predictions(PROBS, LABELS), labels),
    ):
        with pytest.raises(ValueError, match=message):
            take()


def test_predictions_are_scored_against_their_own_labels():
    predictions = Predictions(PROBS, LABELS)
    assert metrics.accuracy(predictions, LABELS.tolist()) == metric_value(
        "accuracy", predictions, 15, "split"
    )
    with pytest.raises(ValueError, match="labels are not those of the predictions"):
        metrics.accuracy(predictions, (LABELS + 1) % 4)


def test_a_classifier_has_scores_and_unmasked_labels():
    with pytest.raises(ValueError, match="estimator is LinearRegression, without decision_function"):
        CalibratedClassifier(LinearRegression(), "ts").fit(LOGITS, LABELS)
    with pytest.raises(ValueError, match="y has masked entries"):
        CalibratedClassifier(GaussianNB(), "ts").fit(LOGITS, np.ma.masked_array(LABELS, LABELS == 1))


def test_what_is_taken_keeps_its_numbers():
    assert logit_matrix([[1, 2]]).dtype == np.float64
    assert logit_matrix(LOGITS) is LOGITS
    assert logit_matrix(LOGITS.T).flags.c_contiguous
    assert np.array_equal(logit_matrix(np.ma.masked_array(LOGITS)), LOGITS)
    assert matrix("x", np.asfortranarray(LOGITS)).flags.f_contiguous
    assert real_array("x", 3).shape == ()
    assert label_vector(np.array([0, 3], dtype=np.uint8), 2, 4).tolist() == [0, 3]
    assert finite_array("x", np.zeros(0)).shape == (0,)
    with pytest.raises(ValueError, match=r"^x is inf; allowed: finite numbers, at most 1.8e\+308"):
        finite_array("x", np.inf)
    with pytest.raises(ValueError, match=r"^logits\[0, 1\] is -1e\+301; allowed: .* 1e\+300"):
        logit_matrix([[0.0, -1e301]])
