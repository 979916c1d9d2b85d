"""Decompositions of proper scores, debiased and smooth errors, and the errors of calibrated predictions."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from scipy.special import log_softmax

from focalcal.calibration import metrics
from focalcal.calibration.catalogue import METRICS
from focalcal.calibration.scores import refinement
from focalcal.calibration.scores.predictions import Predictions
from focalcal.calibration.scores.smooth_error import smooth_calibration_error

# Smooth ECE by relplot 1.0.3 of `calibrated(500, p)`, p = 1, 1.3, 3: relplot.smECE(confidence, correct).
RELPLOT = {1: 0.03395649077914158, 1.3: 0.03728027768222209, 3: 0.17263883071745229}


def drawn(samples, classes, sharpness=1.0, seed=0):
    """Return log-probabilities and labels drawn from them after the logits were multiplied by `sharpness`."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(samples, classes))
    shares = np.exp(log_softmax(logits, axis=1)).cumsum(axis=1)
    labels = np.minimum((shares < rng.random((samples, 1))).sum(axis=1), classes - 1)
    return log_softmax(sharpness * logits, axis=1), labels


def value(name, log_probs, labels):
    return metrics.metric_value(name, Predictions.from_logs(log_probs, labels), 15, "split")


class TestRefinement:
    @pytest.mark.parametrize("score", ["nll", "brier"])
    def test_the_parts_sum_to_the_score(self, score):
        log_probs, labels = drawn(600, 4, 1.7)
        parts = [value(f"{score}_{part}", log_probs, labels) for part in ("calibration", "refinement")]
        assert sum(parts) == pytest.approx(value(score, log_probs, labels), rel=1e-15)

    @pytest.mark.parametrize("score", ["nll", "brier"])
    def test_a_temperature_moves_nothing_but_the_calibration_part(self, score):
        sharp, labels = drawn(900, 5, 3.0)
        flat, _ = drawn(900, 5, 0.4)
        refined = [value(f"{score}_refinement", logs, labels) for logs in (sharp, flat)]
        assert refined[0] == pytest.approx(refined[1], rel=1e-9)
        assert value(f"{score}_calibration", sharp, labels) > 0.05

    def test_calibrated_predictions_have_little_of_it(self):
        log_probs, labels = drawn(20_000, 5)
        assert abs(value("nll_calibration", log_probs, labels)) < 2e-4
        assert abs(value("brier_calibration", log_probs, labels)) < 2e-4

    def test_each_fold_is_scaled_by_what_fits_the_others(self):
        for samples in (40, 3000):  # folds far from and near to the common slope
            log_probs, labels = drawn(samples, 3, 2.0, seed=4)
            slopes = refinement.held_out_slopes(log_probs, labels)
            fold = np.random.default_rng(0).permutation(samples) % 5
            for number in range(5):
                others, (slope,) = fold != number, set(slopes[fold == number])

                def loss(slope, rows=others, log_probs=log_probs, labels=labels):
                    scaled = log_softmax(slope * log_probs[rows], axis=1)
                    return -scaled[np.arange(rows.sum()), labels[rows]].mean()

                best = optimize.minimize_scalar(loss, bounds=(0.01, 5), method="bounded").x
                assert slope == pytest.approx(best, rel=1e-3)
                assert loss(slope) == pytest.approx(loss(best), abs=1e-7)

    def test_samples_that_are_all_correct_have_a_finite_score(self):
        log_probs = log_softmax(np.eye(3)[[0, 1, 2, 0, 1, 2]], axis=1)
        slopes = refinement.held_out_slopes(log_probs, np.array([0, 1, 2] * 2))
        assert np.all((slopes > 20) & (slopes <= 100))
        assert value("nll_refinement", log_probs, [0, 1, 2] * 2) == pytest.approx(0, abs=1e-6)

    @settings(max_examples=60, deadline=None)
    @given(
        samples=st.integers(1, 40),
        classes=st.sampled_from([2, 3, 10, 100, 1000]),
        spread=st.floats(-6, 8),
        right=st.sampled_from([0.0, 0.5, 1.0]),
        seed=st.integers(0, 10**6),
    )
    def test_every_score_of_finite_logits_is_finite(self, samples, classes, spread, right, seed):
        rng = np.random.default_rng(seed)
        logits = 10.0**spread * rng.normal(size=(samples, classes))
        others = rng.integers(classes, size=samples)
        labels = np.where(rng.random(samples) < right, logits.argmax(axis=1), others)
        log_probs = log_softmax(logits, axis=1)
        values = {name: value(name, log_probs, labels) for name in METRICS}
        assert {name for name, found in values.items() if not math.isfinite(found)} <= {"s99_accuracy"}
        kept = np.maximum(log_probs, -700)
        scaled = log_softmax(refinement.held_out_slopes(kept, labels)[:, None] * kept, axis=1)
        expected = -scaled[np.arange(samples), labels].mean()
        assert values["nll_refinement"] == pytest.approx(expected, rel=1e-9, abs=1e-12)
        expected = ((np.exp(scaled) - np.eye(classes)[labels]) ** 2).sum(axis=1).mean()
        assert values["brier_refinement"] == pytest.approx(expected, rel=1e-9, abs=1e-12)

    def test_probability_zero_of_a_label_is_an_infinite_calibration_error(self):
        probs = np.array([[1.0, 0.0], [0.3, 0.7], [0.6, 0.4], [0.8, 0.2]])
        assert math.isfinite(metrics.nll_refinement(probs, [1, 1, 0, 0]))
        assert metrics.nll_calibration(probs, [1, 1, 0, 0]) == math.inf


def calibrated(samples, power):
    """Return confidences and outcomes; calibrated if `power` is 1. The same draws gave `RELPLOT`."""
    rng = np.random.default_rng(0)
    for later in (1, 1.3, 3):
        confidence = rng.beta(5, 1, samples) * 0.9 + 0.1
        correct = rng.random(samples) < confidence**later
        if later == power:
            return confidence, correct
    raise ValueError(power)


class TestSmoothError:
    @pytest.mark.parametrize("power", RELPLOT)
    def test_agrees_with_relplot_to_its_resolution(self, power):
        assert smooth_calibration_error(*calibrated(500, power)) == pytest.approx(RELPLOT[power], abs=1e-3)

    @pytest.mark.parametrize("power", RELPLOT)
    def test_is_the_fixed_point_of_its_definition(self, power):
        confidence, correct = calibrated(60, power)
        found = smooth_calibration_error(confidence, correct)
        places = np.linspace(0, 1, 4001)[:, None]
        images = [side + 2 * turn for turn in range(-3, 4) for side in (confidence, -confidence)]
        kernel = sum(stats.norm.pdf(places, image, found) for image in images)
        error = np.trapezoid(np.abs(kernel @ (confidence - correct)), dx=1 / 4000) / 60
        assert found == pytest.approx(error, abs=2e-5)

    def test_extremes(self):
        assert metrics.smece(np.eye(2), [0, 1]) < 1e-5
        assert metrics.smece(np.eye(2), [1, 0]) == pytest.approx(1, abs=1e-5)


class TestDebiasedError:
    def test_by_hand(self):
        # Two bins of equal mass: confidences .6 .6 .7 with 2 hits, .8 .9 with 1.
        probs = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6], [0.6, 0.4]])
        low = (1.9 / 3 - 2 / 3) ** 2 - (2 / 3) * (1 / 3) / 2
        high = (1.7 / 2 - 1 / 2) ** 2 - (1 / 2) * (1 / 2) / 1
        squares = metrics.debiased_squares(Predictions(probs, [0, 1, 1, 1, 1]).mass_bins(2))
        assert squares == pytest.approx([0.6 * low, 0.4 * high])
        assert metrics.debiased_ece(probs, [0, 1, 1, 1, 1], bins=2) == 0.0  # the sum is negative

    def test_classwise_by_hand(self):
        # One bin: class 0 has mean .7 and rate 3/4, class 1 mean .3 and rate 1/4, both of four samples.
        probs = np.array([[0.7, 0.3]] * 4)
        square = 0.05**2 - 0.75 * 0.25 / 3
        squares = metrics.debiased_squares(Predictions(probs, [0, 0, 0, 1]).class_bins(1))
        assert squares.sum() == pytest.approx(square)
        assert metrics.classwise_debiased_ece(probs, [0, 0, 0, 1], bins=1) == 0.0
        wrong = np.array([[0.1, 0.9]] * 4)
        expected = math.sqrt(0.65**2 - 0.75 * 0.25 / 3)
        assert metrics.classwise_debiased_ece(wrong, [0, 0, 0, 1], bins=1) == pytest.approx(expected)

    def test_the_square_is_unbiased(self):
        """Confidence 0.8, true rate 0.7: the mean of the squared estimate over test sets is 0.01."""
        rng = np.random.default_rng(1)
        probs, found = np.tile([0.8, 0.2], (40, 1)), []
        for _ in range(4000):
            labels = (rng.random(40) > 0.7).astype(int)
            found.append(metrics.debiased_squares(Predictions(probs, labels).mass_bins(2)).sum())
        assert np.mean(found) == pytest.approx(0.01, abs=4 * np.std(found) / math.sqrt(4000))


class TestErrorOfCalibratedPredictions:
    def test_one_confidence_is_the_mean_deviation_of_a_binomial(self):
        probs, samples = np.tile([0.7, 0.3], (200, 1)), 200
        outcomes = np.arange(samples + 1)
        deviation = np.abs(outcomes - 140) @ stats.binom.pmf(outcomes, samples, 0.7) / samples
        spread = math.sqrt(0.7 * 0.3 / samples)
        labels = np.zeros(samples, dtype=int)
        assert metrics.ece_perfect(probs, labels) == pytest.approx(deviation, abs=3 * spread / 10)
        assert metrics.adaece_perfect(probs, labels, bins=1) == metrics.ece_perfect(probs, labels)

    def test_calibrated_data_score_about_that_and_others_more(self):
        log_probs, labels = drawn(4000, 4)
        for name in ("ece", "adaece"):
            expected = value(f"{name}_perfect", log_probs, labels)
            assert value(name, log_probs, labels) == pytest.approx(expected, rel=0.6)
        sharp, labels = drawn(4000, 4, 1.5)
        assert value("ece", sharp, labels) > 5 * value("ece_perfect", sharp, labels)


class TestRiskCoverage:
    def test_by_hand(self):
        # By falling confidence: right, misclassified, right: errors 0/1, 1/2, 1/3.
        probs = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]])
        assert metrics.aurc(probs, [0, 1, 0]) == pytest.approx((0 + 1 / 2 + 1 / 3) / 3)

    def test_equal_confidences_come_in_random_order(self):
        probs = np.array([[0.9, 0.1], [0.7, 0.3], [0.7, 0.3], [0.6, 0.4]])
        orders = [(0, 0, 1, 1), (0, 1, 0, 1)]  # misclassified by falling confidence
        expected = np.mean([np.cumsum(order) / np.arange(1, 5) for order in orders])
        assert metrics.aurc(probs, [0, 1, 0, 1]) == pytest.approx(expected)
        assert metrics.aurc(probs, [0, 0, 1, 1]) == pytest.approx(expected)

    def test_a_constant_confidence_has_the_error(self):
        log_probs, labels = drawn(500, 3)
        probs = np.full((500, 3), 0.2)
        probs[np.arange(500), log_probs.argmax(axis=1)] = 0.6
        assert metrics.aurc(probs, labels) == pytest.approx(metrics.error(probs, labels))


def test_a_constant_confidence_looks_perfect_by_ece_and_is_not_by_proper_scores():
    log_probs, labels = drawn(2000, 4)
    accuracy = value("accuracy", log_probs, labels)
    probs = np.full((2000, 4), (1 - accuracy) / 3)
    probs[np.arange(2000), log_probs.argmax(axis=1)] = accuracy
    constant = Predictions(probs, labels)
    assert metrics.ece(constant, labels) == pytest.approx(0, abs=1e-12)
    assert metrics.nll_calibration(constant, labels) < 1e-3
    for name in ("nll", "brier", "nll_refinement", "brier_refinement", "aurc"):
        assert getattr(metrics, name)(constant, labels) > 1.05 * value(name, log_probs, labels)
