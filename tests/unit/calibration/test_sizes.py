"""Calibrators fitted to few validation samples: which samples, which scores, how they vary."""

import json

import numpy as np
import pytest

from focalcal.calibration.calibrators import TemperatureScaling
from focalcal.calibration.files.logits_io import RunLogits, Split
from focalcal.calibration.metrics import ece, nll
from focalcal.calibration.sizes import draw, read_size_scores, scores_by_size
from workflow_scripts import validation_sizes

SPEC = {
    "run": {"dataset": "d", "model": "m", "loss": "brier", "seed": 1, "gamma": None},
    "methods": ["none", "ts", "ms", "psi"],
    "sizes": [50, 200, 300],
    "repetitions": 5,
    "gammas": [-0.5, 0.5],
    "temperatures": {"start": 0.1, "stop": 5.0, "step": 0.1},
    "bins": 15,
    "adaece": "split",
    "resamples": 100,
}


def split(seed, count=200):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, count)
    return Split(3 * (np.eye(3)[labels] + rng.normal(size=(count, 3))), labels)


@pytest.fixture(scope="module")
def logits():
    return RunLogits(split(0), split(1, 400))


@pytest.fixture(scope="module")
def found(logits):
    return scores_by_size(logits, SPEC)


def test_sizes_that_the_split_lacks_are_left_out(found):
    assert found.record["samples"] == [50, 200]
    assert found.record["factors"] == [pytest.approx(1 / 5 + 50 / 150), 1.0]


def test_scores_are_means_over_subsamples(found, logits):
    subsets = draw(logits.val.labels, 50, 5).subsets
    fits = [
        TemperatureScaling("nll").fit(logits.val.logits[rows], logits.val.labels[rows]) for rows in subsets
    ]
    probs = [fit.predict_proba(logits.test.logits) for fit in fits]
    losses = [nll(p, logits.test.labels) for p in probs]
    at = found.record["methods"].index("ts")
    assert found.scores[at, 0, 0] == pytest.approx(np.mean(losses), rel=1e-6)
    assert np.std(found.refits[at, 0, :, 0]) == pytest.approx(np.std(losses), rel=1e-6)
    whole = TemperatureScaling("nll").fit(logits.val.logits, logits.val.labels)
    probs = whole.predict_proba(logits.test.logits)
    expected = [nll(probs, logits.test.labels), ece(probs, logits.test.labels)]
    assert found.scores[at, 1, [0, 2]] == pytest.approx(expected, rel=1e-6)
    assert found.fitted[at, 1, 1] == pytest.approx(whole.temperature_, rel=1e-6)


def test_draws_centre_on_the_score_and_vary_as_samples_do(found, logits):
    probs = np.exp(logits.test.logits) / np.exp(logits.test.logits).sum(axis=1, keepdims=True)
    losses = -np.log(probs[np.arange(400), logits.test.labels])
    draws = found.draws[0, 0, :, 0]
    error = losses.std(ddof=1) / 20
    assert draws.mean() == pytest.approx(losses.mean(), abs=4 * error / 10)
    # The standard error of a standard deviation of 100 draws is 7 %.
    assert draws.std(ddof=1) == pytest.approx(error, rel=0.28)
    assert found.refits[0].std(axis=1)[0] == pytest.approx(np.zeros(3), abs=1e-12)


def test_what_was_not_fitted_has_no_scores_and_a_reason(found):
    reasons = {(row["method"], row.get("samples")): row["reason"] for row in found.record["not_applicable"]}
    assert reasons[("psi", None)].startswith("loss 'brier' is not focal loss")
    assert np.isnan(found.scores[3]).all()


def test_draws_depend_on_the_labels_alone(logits):
    first, second = draw(logits.val.labels, 50, 5), draw(logits.val.labels.copy(), 50, 5)
    assert all(np.array_equal(a, b) for a, b in zip(first.subsets, second.subsets, strict=True))
    assert len(set(first.subsets[0].tolist())) == 50
    assert not np.array_equal(first.subsets[0], draw(logits.test.labels, 50, 5).subsets[0])


@pytest.mark.parametrize(
    ("size", "subsets", "resampled"), [(1000, 10, 10), (2500, 8, 8), (6000, 6, 6), (9000, 1, 6)]
)
def test_large_sizes_have_few_repetitions(size, subsets, resampled):
    drawn = draw(np.zeros(9000, dtype=np.int64), size, 10)
    assert (len(drawn.subsets), len(drawn.resampled)) == (subsets, resampled)


def test_variance_of_the_mean_of_overlapping_subsamples():
    # Of many pools of 40 values, the mean over 4 subsamples of 10: its variance follows from theirs.
    rng = np.random.default_rng(0)
    means, within = [], []
    for pool in rng.normal(size=(2000, 40)):
        drawn = [pool[rng.permutation(40)[:10]].mean() for _ in range(4)]
        means.append(np.mean(drawn))
        within.append(np.var(drawn, ddof=1))
    factor = draw(np.arange(40) % 2, 10, 4).factor
    assert factor == pytest.approx(1 / 4 + 10 / 30)
    assert np.var(means) == pytest.approx(factor * np.mean(within), rel=0.1)


def test_the_entry_point_writes_what_is_read_again(tmp_path, logits, found):
    arrays = {
        f"{s}_{k}": getattr(getattr(logits, s), k) for s in ("val", "test") for k in ("logits", "labels")
    }
    np.savez(tmp_path / "logits.npz", **arrays)
    record, scores = tmp_path / "sizes.json", tmp_path / "sizes.npz"
    files = ["--logits", tmp_path / "logits.npz", "--record", record, "--scores", scores]
    validation_sizes.main(["--spec", json.dumps(SPEC), *map(str, files)])
    again = read_size_scores(record, scores)
    np.testing.assert_array_equal(again.scores, found.scores)
    np.testing.assert_allclose(again.draws, found.draws, rtol=1e-6)
    assert again.record["spec"] == SPEC
    assert again.record["test"] == found.record["test"]
