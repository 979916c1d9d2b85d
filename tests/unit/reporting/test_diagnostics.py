import numpy as np
import pytest

from focalcal.calibration import metrics
from focalcal.calibration.logits_io import RunLogits, Split
from focalcal.calibration.run import calibrate
from focalcal.reporting.records import diagnostics

SPEC = {
    "run": {"dataset": "d", "model": "m", "loss": "focal-2", "seed": 1, "gamma": 2.0},
    "methods": ["none", "ts", "fts", "psi", "psi-ts"],
    "criteria": ["nll", "ece"],
    "gammas": [0.5, 1.0],
    "temperatures": {"start": 0.5, "stop": 3.0, "step": 0.1},
    "bins": 15,
    "adaece": "split",
}


@pytest.fixture(scope="module")
def logits():
    rng = np.random.default_rng(0)
    splits = []
    for size in (400, 600):
        labels = rng.integers(0, 3, size)
        values = rng.normal(size=(size, 3)) * 2
        values[np.arange(size), labels] += 1.5
        splits.append(Split(values, labels))
    return RunLogits(*splits)


@pytest.fixture(scope="module")
def calibration(logits):
    return calibrate(logits, SPEC)


@pytest.fixture(scope="module")
def fits(calibration):
    return {**calibration.fits, "spec": SPEC}


@pytest.fixture(scope="module")
def found(logits, fits):
    return diagnostics.summarise_run(logits, fits, criterion="ece", resamples=200)


def score(calibration, method, criterion, metric):
    (row,) = [
        row
        for row in calibration.rows
        if (row["method"], row["criterion"], row["split"], row["metric"])
        == (method, criterion, "test", metric)
    ]
    return row["value"]


def test_the_curve_at_1_is_the_ece_as_trained(logits):
    probs = np.exp(logits.test.logits) / np.exp(logits.test.logits).sum(axis=1, keepdims=True)
    (ours,) = diagnostics.ece_curve(logits.test, np.array([1.0]), 15)
    assert ours == pytest.approx(metrics.ece(probs, logits.test.labels, 15), abs=1e-12)


def test_bins_give_back_the_ece_of_the_metrics_table(found, calibration):
    criteria = {"none": None, "psi": None, "ts": "ece", "fts": "ece", "psi-ts": "ece"}
    assert [entry["method"] for entry in found["reliability"]] == SPEC["methods"]
    for entry in found["reliability"]:
        assert entry["criterion"] == criteria[entry["method"]]
        assert set(entry["parameters"]) == {"gamma", "temperature"}
        count = np.array(entry["count"])
        gaps = [
            abs(c - a) if n else 0
            for n, c, a in zip(count, entry["confidence"], entry["accuracy"], strict=True)
        ]
        expected = score(calibration, entry["method"], entry["criterion"], "ece")
        assert float(np.sum(count * gaps) / count.sum()) == pytest.approx(expected, abs=1e-6)


def test_comparisons_are_those_of_the_metrics_table(found, calibration):
    rows = {
        (row["method"], row["against"], row["criterion"], row["metric"]): row for row in found["comparisons"]
    }
    assert len(rows) == len(found["comparisons"])
    for criterion in ("nll", "ece"):
        for metric in ("nll", "brier", "ece"):
            row = rows["fts", "ts", criterion, metric]
            assert row["value"] == pytest.approx(score(calibration, "fts", criterion, metric), rel=1e-6)
            assert row["against_value"] == pytest.approx(
                score(calibration, "ts", criterion, metric), rel=1e-6
            )
            assert row["low"] <= row["high"]
            assert rows["ts", "fts", criterion, metric]["z"] == pytest.approx(-row["z"], abs=1e-6)
            # What is not fitted is compared with the fits of every criterion.
            none = rows["none", "ts", criterion, metric]
            assert none["value"] == pytest.approx(score(calibration, "none", None, metric), rel=1e-6)


def test_methods_that_are_not_shown_are_not_compared(found):
    assert {row["method"] for row in found["comparisons"]} == {"none", "ts", "fts", "psi"}


def test_debiased_errors_have_intervals(found, calibration):
    assert list(found["debiased_ece"]) == ["none", "ts", "fts", "psi"]
    for method, (value, low, high) in found["debiased_ece"].items():
        criterion = "ece" if method in {"ts", "fts"} else None
        assert value == pytest.approx(score(calibration, method, criterion, "debiased_ece"), rel=1e-6)
        assert 0 <= low <= high


def test_nothing_is_compared_without_both_fits(logits, fits):
    without = {**fits, "fits": [fit for fit in fits["fits"] if fit["method"] == "none"]}
    assert diagnostics.summarise_run(logits, without, criterion="ece", resamples=100)["comparisons"] == []


def test_curve_is_the_ece_of_scaled_logits(logits, found):
    temperature, value = found["curve"]["temperatures"][40], found["curve"]["ece"][40]
    scaled = np.exp(logits.test.logits / temperature)
    probs = scaled / scaled.sum(axis=1, keepdims=True)
    assert value == pytest.approx(metrics.ece(probs, logits.test.labels, 15), abs=1e-6)


def test_curve_spans_what_was_searched_and_its_surroundings():
    wide, narrow = diagnostics.curve_grid(np.array([0.01, 5.0])), diagnostics.curve_grid(np.array([1.3]))
    assert (wide[0], wide[-1]) == pytest.approx((0.01, 5.0))
    assert (narrow[0], narrow[-1]) == pytest.approx((0.25, 4.0))
