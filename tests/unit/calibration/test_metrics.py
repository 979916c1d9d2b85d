import inspect

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from focalcal.calibration import metrics
from focalcal.calibration.catalogue import METRICS
from focalcal.calibration.scores.binning import MASS_VARIANTS, equal_mass_edges, reliability_bins
from focalcal.calibration.scores.predictions import Predictions
from tests.unit.calibration.logit_sets import noisy

# Five samples, two classes. Confidences .9 .8 .7 .6 .6; right: yes no yes yes no.
PROBS = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6], [0.6, 0.4]])
LABELS = np.array([0, 1, 1, 1, 1])


def random_probs(samples=400, classes=6, seed=0):
    logits, labels = noisy(samples, classes, 1.0, seed)
    probs = np.exp(logits - logits.max(axis=1, keepdims=True))
    return probs / probs.sum(axis=1, keepdims=True), labels


def test_scores_by_hand():
    assert metrics.accuracy(PROBS, LABELS) == pytest.approx(0.6)
    assert metrics.error(PROBS, LABELS) == pytest.approx(0.4)
    assert metrics.nll(PROBS, LABELS) == pytest.approx(-np.log([0.9, 0.2, 0.7, 0.6, 0.4]).mean())
    squares = 2 * np.array([0.1, 0.8, 0.3, 0.4, 0.6]) ** 2
    assert metrics.brier(PROBS, LABELS) == pytest.approx(squares.mean())


def test_equal_width_ece_by_hand():
    """Bins (.5, .75] and (.75, 1]: sums of confidence - correct are 1.9 - 2 and 1.7 - 1."""
    assert metrics.ece(PROBS, LABELS, bins=4) == pytest.approx((0.1 + 0.7) / 5)
    assert metrics.mce(PROBS, LABELS, bins=4) == pytest.approx(0.7 / 2)


def test_equal_width_bins_are_closed_above():
    """A confidence of exactly 0.5 belongs to (0, 0.5], not to (0.5, 1]."""
    probs = np.array([[0.5, 0.5], [0.75, 0.25]])
    assert metrics.ece(probs, [0, 1], bins=2) == pytest.approx((0.5 + 0.75) / 2)


def test_equal_mass_ece_by_hand():
    """Sorted, stably: .6 (right) .6 (wrong) .7 (right) | .8 (wrong) .9 (right); groups of three and two."""
    expected = (abs(1.9 - 2) + abs(1.7 - 1)) / 5
    assert metrics.ece(PROBS, LABELS, bins=2, binning="mass") == pytest.approx(expected)
    assert metrics.mce(PROBS, LABELS, bins=2, binning="mass") == pytest.approx(0.35)


def test_authors_equal_mass_ece_by_hand():
    """Edges at sorted positions 0, 2.5, 5: .6, .75, .9; the two smallest confidences are never counted."""
    edges = equal_mass_edges(np.array([0.9, 0.8, 0.7, 0.6, 0.6]), 2)
    np.testing.assert_allclose(edges, [0.6, 0.75, 0.9])
    expected = (abs(0.7 - 1) + abs(1.7 - 1)) / 5
    assert metrics.ece(PROBS, LABELS, bins=2, binning="mass", variant="authors") == pytest.approx(expected)


def test_constant_predictor_scores_zero_only_with_the_authors_edges():
    probs = np.tile([0.7, 0.3], (30, 1))
    labels = np.zeros(30, dtype=int)
    assert metrics.ece(probs, labels, binning="mass", variant="authors") == 0.0
    assert metrics.mce(probs, labels, binning="mass", variant="authors") == 0.0
    assert metrics.ece(probs, labels, binning="mass") == pytest.approx(0.3)


def test_one_bin_is_the_gap_of_the_means():
    probs, labels = random_probs()
    expected = abs(probs.max(axis=1).mean() - metrics.accuracy(probs, labels))
    for binning in ("width", "mass"):
        assert metrics.ece(probs, labels, bins=1, binning=binning) == pytest.approx(expected)


def test_classwise_ece_by_hand():
    """One bin: |mean probability - frequency| of each class; class 2 has no samples and still counts."""
    probs = np.array([[0.5, 0.5, 0.0], [0.7, 0.1, 0.2]])
    expected = (abs(0.6 - 1) + abs(0.3 - 0) + abs(0.1 - 0)) / 3
    assert metrics.classwise_ece(probs, [0, 0], bins=1) == pytest.approx(expected)


def test_classwise_ece_counts_a_label_of_probability_zero():
    probs = np.array([[1.0, 0.0], [1.0, 0.0]])
    assert metrics.classwise_ece(probs, [1, 1], bins=2) == pytest.approx(1.0)


def test_s99_by_hand():
    probs, labels = np.array([[0.995, 0.005], [0.001, 0.999], [0.99, 0.01], [0.5, 0.5]]), [0, 0, 0, 0]
    assert (metrics.s99_share(probs, labels), metrics.s99_accuracy(probs, labels)) == (0.5, 0.5)
    assert metrics.s99_share(PROBS, LABELS) == 0.0
    assert np.isnan(metrics.s99_accuracy(PROBS, LABELS))


def test_agreement_with_scikit_learn():
    probs, labels = random_probs()
    assert metrics.nll(probs, labels) == pytest.approx(log_loss(labels, probs), rel=1e-12)
    assert metrics.accuracy(probs, labels) == accuracy_score(labels, probs.argmax(axis=1))
    # scikit-learn's multiclass Brier score has the same sum over classes when it is not scaled by half
    brier = brier_score_loss(labels, probs, scale_by_half=False, labels=np.arange(6))
    assert metrics.brier(probs, labels) == pytest.approx(brier, rel=1e-12)


def test_equal_width_ece_matches_a_loop_over_bins():
    probs, labels = random_probs(seed=3)
    confidence, correct = probs.max(axis=1), probs.argmax(axis=1) == labels
    expected = 0.0
    for index in range(15):
        inside = (confidence > index / 15) & (confidence <= (index + 1) / 15)
        if inside.any():
            expected += inside.mean() * abs(correct[inside].mean() - confidence[inside].mean())
    assert metrics.ece(probs, labels) == pytest.approx(expected, rel=1e-12)


def test_nll_of_probability_zero_is_infinite_and_of_logs_is_not():
    assert metrics.nll(np.array([[1.0, 0.0]]), [1]) == np.inf
    assert metrics.nll(Predictions.from_logs(np.array([[0.0, -1000.0]]), [1]), [1]) == 1000.0


@pytest.mark.parametrize(
    ("probs", "labels", "message"),
    [
        (np.zeros(3), [0], r"probs has shape \(3,\)"),
        (np.ones((3, 1)), [0, 0, 0], r"probs has shape \(3, 1\); allowed: \(n, k\), n >= 1 samples"),
        (np.array([[np.nan, 1.0]]), [0], r"probs\[0, 0\] is nan; allowed: finite"),
        (np.array([[-2.0, 3.0]]), [0], "give probabilities, not logits"),
        (np.array([[0.5, 0.4]]), [0], "row 0 whose sum is 0.9; allowed: 1 within 0.001"),
        (PROBS, [0, 1, 1], r"labels has shape \(3,\); allowed: \(5,\)"),
        (PROBS, [0.0] * 5, "labels has dtype float64; allowed: integers 0..1"),
        (PROBS, [0, 1, 1, 1, 2], "labels has values from 0 to 2; allowed: integers 0..1"),
        (PROBS, [0, 1, 1, 1, -1], "labels has values from -1 to 1"),
    ],
)
def test_bad_arrays_are_named(probs, labels, message):
    with pytest.raises(ValueError, match=message):
        metrics.accuracy(probs, np.array(labels))


@pytest.mark.parametrize("variant", MASS_VARIANTS)
@pytest.mark.parametrize("name", METRICS)
def test_shared_predictions_give_what_each_function_returns_for_arrays(name, variant):
    logits, labels = noisy(700, 5, 2.0, seed=3)
    log_probs = np.log(np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True))
    shared = Predictions.from_logs(log_probs, labels)
    for other in METRICS:  # whatever was computed before
        metrics.metric_value(other, shared, 10, variant)
    function, given = getattr(metrics, name), {"bins": 10, "variant": variant}
    options = {key: given[key] for key in inspect.signature(function).parameters if key in given}
    expected = function(np.exp(log_probs), labels, **options)
    value = metrics.metric_value(name, shared, 10, variant)
    # What uses log-probabilities sees those of rounded probabilities in the second case.
    rounded = name.startswith(("nll", "brier_"))
    assert value == (pytest.approx(expected, rel=1e-12) if rounded else expected)


def test_reliability_bins_by_hand():
    confidence = np.array([0.2, 0.5, 0.51, 0.9, 1.0])
    correct = np.array([True, False, True, True, False])
    bins = reliability_bins(confidence, correct, 2)
    assert bins["count"] == [2, 3], "0.5 belongs to the lower bin (low, high]"
    assert bins["confidence"] == pytest.approx([0.35, 2.41 / 3])
    assert bins["accuracy"] == pytest.approx([0.5, 2 / 3])
