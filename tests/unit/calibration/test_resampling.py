import math

import numpy as np
import pytest
from scipy import sparse

from focalcal.calibration.metrics import metric_value
from focalcal.calibration.scores import resampling
from focalcal.calibration.scores.predictions import Predictions


def ece(confidence, correct):
    bins = np.minimum((confidence * 15).astype(int), 14)
    return np.abs(np.bincount(bins, weights=correct - confidence, minlength=15)).sum() / len(correct)


def percentiles(metric, first, second, resamples):
    """Return the percentile interval of a difference, from the draws that `compared` makes."""
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(resamples):
        rows = rng.integers(len(first[0]), size=len(first[0]))
        draws.append(metric(*(a[rows] for a in first)) - metric(*(a[rows] for a in second)))
    return np.quantile(draws, [0.025, 0.975])


def columns(values):
    """Return values (n,) as the array of one column that `resample_means` takes."""
    return sparse.csc_array(values[:, None])


def compared(metric, first, second, resamples):
    """Return the comparison of a metric of arrays with samples along the first axis, resample by resample."""
    rng = np.random.default_rng(0)
    rows = [rng.integers(len(first[0]), size=len(first[0])) for _ in range(resamples)]
    sides = [
        resampling.Resampled(
            metric(*side), np.array([metric(*(part[drawn] for part in side)) for drawn in rows])
        )
        for side in (first, second)
    ]
    return resampling.compare_resampled(*sides)


def test_a_mean_has_the_textbook_interval():
    rng = np.random.default_rng(0)
    second = rng.normal(size=2000)
    first = second + rng.normal(0.05, 0.3, size=2000)
    difference = first - second
    sides = resampling.resample_means([columns(first), columns(second)], resamples=4000)
    result = resampling.compare_resampled(*(side[0] for side in sides))
    error = difference.std(ddof=1) / math.sqrt(2000)
    assert result.difference == pytest.approx(difference.mean())
    assert result.error == pytest.approx(error, rel=0.05)
    assert result.z == pytest.approx(difference.mean() / error, rel=0.05)


def test_weights_are_those_of_drawn_samples():
    (weights,) = resampling.resample_weights(5, 2)
    rng = np.random.default_rng(0)
    for row in weights:
        drawn = rng.integers(5, size=5)
        assert row.tolist() == [np.sum(drawn == index) / 5 for index in range(5)]


def test_chunks_are_one_sequence_of_resamples():
    chunks = list(resampling.resample_weights(7, resampling.CHUNK + 3))
    assert [len(chunk) for chunk in chunks] == [resampling.CHUNK, 3]
    assert np.concatenate(chunks).sum(axis=1) == pytest.approx(1)


def test_scores_are_the_metrics():
    rng = np.random.default_rng(2)
    probs = rng.dirichlet([1, 2, 3], size=200)
    predictions = Predictions(probs, rng.integers(0, 3, 200))
    summands = resampling.score_summands(predictions, 15, equal_mass=True)
    (means,) = resampling.resample_means([summands], 3)
    found = resampling.compared_scores(means, 15)
    expected = [metric_value(name, predictions, 15, "split") for name in resampling.ALL_COMPARED]
    assert found.value == pytest.approx(expected, rel=1e-12)
    rows = np.random.default_rng(0).integers(200, size=200)
    again = Predictions(probs[rows], predictions.labels[rows])
    expected = [metric_value(name, again, 15, "split") for name in resampling.COMPARED_METRICS]
    assert found.draws[0, :3] == pytest.approx(expected, rel=1e-12)
    # A resample keeps the bins of equal mass, so that their masses vary.
    order = np.argsort(predictions.confidence)
    gaps = predictions.confidence - predictions.correct
    count = np.bincount(rows, minlength=200)
    of_bins = [np.sum(count[part] * gaps[part]) for part in np.array_split(order, 15)]
    assert found.draws[0, 3] == pytest.approx(np.abs(of_bins).sum() / 200, rel=1e-12)


def test_the_same_scores_never_differ():
    values = columns(np.random.default_rng(1).random(50))
    first, second = (side[0] for side in resampling.resample_means([values, values], resamples=20))
    result = resampling.compare_resampled(first, second)
    assert (result.difference, result.error, result.z) == (0, 0, 0)


def test_the_bias_of_binned_errors_is_removed():
    """Of 40 test sets, the interval without it covers the true difference of ECEs far more often."""
    rng = np.random.default_rng(6)
    covered = {"corrected": 0, "percentile": 0}
    true = rng.beta(5, 1.2, 1_000_000) * 0.7 + 0.3
    sharpened = true**1.5 / (true**1.5 + (1 - true) ** 1.5)
    truth = ece(sharpened, true)  # the other predictor is perfectly calibrated
    for _ in range(40):
        rows = rng.integers(len(true), size=2000)
        correct = rng.random(2000) < true[rows]
        sides = [sharpened[rows], correct], [true[rows], correct]
        found = compared(ece, *sides, resamples=100)
        covered["corrected"] += abs(found.z * found.error - truth) < 1.96 * found.error
        low, high = percentiles(ece, *sides, resamples=100)
        covered["percentile"] += low <= truth <= high
    assert covered["corrected"] > 28
    assert covered["percentile"] < 16


def test_a_change_of_paired_losses_has_the_interval_of_its_mean():
    # Differences 1, 0, 2, 1: mean 1, standard deviation sqrt(2/3), standard error sqrt(1/6).
    change, interval = resampling.mean_change(np.array([1.0, 2.0, 4.0, 5.0]), np.array([0.0, 2.0, 2.0, 4.0]))
    assert change == 1.0
    assert interval.high - 1 == 1 - interval.low == pytest.approx(1.959964 * math.sqrt(1 / 6), rel=1e-6)
