import numpy as np
import pytest

from focalcal.calibration.calibrators import FocalMap
from focalcal.calibration.files.logits_io import RunLogits, Split
from focalcal.calibration.run import calibrate

SPEC = {
    "run": {"dataset": "d", "model": "m", "loss": "focal-2", "seed": 1, "gamma": 2.0},
    "methods": ["none", "ts", "fts", "psi", "psi-ts"],
    "criteria": ["nll", "ece"],
    "gammas": [0.5, 1.0],
    "temperatures": {"start": 0.5, "stop": 3.0, "step": 0.1},
    "bins": 15,
    "adaece": "split",
    "resamples": 200,
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
def found(calibration):
    return calibration.diagnostics


def score(calibration, method, criterion, metric):
    (row,) = [
        row
        for row in calibration.rows
        if (row["method"], row["criterion"], row["split"], row["metric"])
        == (method, criterion, "test", metric)
    ]
    return row["value"]


def test_bins_give_back_the_ece_of_the_metrics_table(found, calibration):
    assert [(fit["method"], fit["criterion"]) for fit in found["fits"]] == [
        (fit["method"], fit["criterion"]) for fit in calibration.fits["fits"]
    ]
    for entry in found["fits"]:
        count = np.array(entry["count"])
        gaps = [
            abs(c - a) if n else 0
            for n, c, a in zip(count, entry["confidence"], entry["accuracy"], strict=True)
        ]
        expected = score(calibration, entry["method"], entry["criterion"], "ece")
        assert float(np.sum(count * gaps) / count.sum()) == pytest.approx(expected, abs=1e-12)


def test_changes_of_log_loss_are_against_the_model_as_trained(found, calibration):
    trained = score(calibration, "none", None, "nll")
    for entry in found["fits"]:
        change, low, high = entry["nll_change"]
        expected = score(calibration, entry["method"], entry["criterion"], "nll") - trained
        assert change == pytest.approx(expected, abs=1e-12)
        assert low < change < high or (entry["method"] == "none" and low == change == high == 0)


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
            assert row["error"] > 0
            assert rows["ts", "fts", criterion, metric]["z"] == pytest.approx(-row["z"], abs=1e-6)
            # What is not fitted is compared with the fits of every criterion.
            none = rows["none", "ts", criterion, metric]
            assert none["value"] == pytest.approx(score(calibration, "none", None, metric), rel=1e-6)


def test_methods_that_are_not_shown_are_not_compared(found):
    assert {row["method"] for row in found["comparisons"]} == {"none", "ts", "fts", "psi"}


def test_each_fit_is_predicted_once_on_each_split(logits, monkeypatch):
    predicted = []
    predict = FocalMap.predict_log_proba

    def count(self, values):
        predicted.append((self.gamma_, self.temperature_, len(values)))
        return predict(self, values)

    monkeypatch.setattr(FocalMap, "predict_log_proba", count)
    calibrate(logits, SPEC | {"methods": ["none", "ts", "fts", "psi"]})
    assert len(predicted) == len(set(predicted))
