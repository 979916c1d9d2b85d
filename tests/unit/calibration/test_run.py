import json
import math

import numpy as np
import pytest

from focalcal.calibration.calibrators import calibrator_class
from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.calibration.files.logits_io import RunLogits, Split, write_logits
from focalcal.calibration.files.tidy import COLUMNS
from focalcal.calibration.fitting.search import NoMinimumError
from focalcal.calibration.run import calibrate
from tests.unit.calibration.logit_sets import brute_force, like_a_network
from workflow_scripts import calibrate as calibrate_script

RUN = {"dataset": "toy", "model": "mlp", "loss": "focal-2", "seed": 3, "gamma": 2.0}
MANY_CLASSES = [name for name, method in METHODS.items() if method.most_classes != 2]
SPEC = {
    "run": RUN,
    "methods": MANY_CLASSES,
    "criteria": ["nll", "ece", "adaece"],
    "gammas": [-0.5, 1, 5],
    "temperatures": {"start": 0.1, "stop": 3.0, "step": 0.1},
    "bins": 15,
    "adaece": "split",
    "resamples": 100,
}


def run_logits(seed=0, classes=5):
    return RunLogits(
        Split(*like_a_network(150, classes, seed)), Split(*like_a_network(120, classes, seed + 1))
    )


@pytest.fixture(scope="module")
def result():
    return calibrate(run_logits(), SPEC)


def test_rows_have_the_contract_columns_and_cover_every_method_split_and_metric(result):
    assert all(tuple(row) == COLUMNS for row in result.rows)
    keys = [(row["method"], row["criterion"], row["split"], row["metric"]) for row in result.rows]
    assert len(keys) == len(set(keys))
    assert {row["method"] for row in result.rows} == set(MANY_CLASSES)
    assert {row["split"] for row in result.rows} == {"val", "test"}
    for method in MANY_CLASSES:
        assert {row["metric"] for row in result.rows if row["method"] == method} >= set(list(METRICS)[:-1])


def test_a_method_without_a_fit_is_listed_and_the_others_are_scored(monkeypatch):
    def fail(*_):
        raise NoMinimumError("the log-loss has no minimum")

    monkeypatch.setattr(calibrator_class("ms"), "_search", fail)
    found = calibrate(run_logits(), SPEC | {"methods": ["ts", "ms", "vs"]})
    assert found.fits["not_applicable"] == [
        {"method": "ms", "reason": "no fit was found: the log-loss has no minimum"}
    ]
    assert {row["method"] for row in found.rows} == {"ts", "vs"}


def test_criteria_are_reported_separately_and_empty_where_nothing_is_fitted(result):
    criteria = {
        method: {row["criterion"] for row in result.rows if row["method"] == method}
        for method in MANY_CLASSES
    }
    assert criteria["none"] == criteria["psi"] == {None}
    assert criteria["ts"] == criteria["fts"] == criteria["psi-ts"] == {"nll", "ece", "adaece"}
    assert criteria["ts-focal"] == {"focal"}


def test_validation_score_is_the_metric_on_the_validation_split(result):
    values = {
        (row["method"], row["criterion"], row["split"], row["metric"]): row["value"] for row in result.rows
    }
    for fit in result.fits["fits"]:
        if fit["criterion"] in ("nll", "ece", "adaece"):
            key = (fit["method"], fit["criterion"])
            assert fit["validation_score"] == pytest.approx(values[*key, "val", fit["criterion"]], abs=1e-11)
            assert fit["test_score"] == pytest.approx(values[*key, "test", fit["criterion"]], abs=1e-11)


def test_fits_record_cost_and_bounds(result):
    fits = {(fit["method"], fit["criterion"]): fit for fit in result.fits["fits"]}
    assert fits["none", None]["evaluations"] == 0
    assert fits["ts", "ece"]["evaluations"] == 30
    assert fits["fts", "ece"]["evaluations"] == 90
    assert fits["fts-line", "ece"]["evaluations"] == 90
    assert all(fit["boundaries"] == {} for fit in fits.values() if fit["criterion"] is None)
    assert result.fits["not_applicable"] == []


def test_surfaces_are_those_of_brute_force_with_gamma_zero_first(result):
    assert result.surfaces["gammas"].tolist() == [0.0, -0.5, 1.0, 5.0]
    slow = brute_force(
        *like_a_network(150, 5, 0),
        result.surfaces["gammas"].tolist(),
        result.surfaces["temperatures"].tolist(),
    )
    for criterion, surface in slow.items():
        np.testing.assert_allclose(result.surfaces[criterion], surface, atol=1e-11)


@pytest.mark.parametrize(
    ("loss", "reason"),
    [
        ("ce", "loss 'ce' is not focal loss of one known gamma"),
        ("", "the training loss is not given (--loss); this method needs its gamma"),
    ],
)
def test_methods_that_need_a_training_gamma_are_recorded_as_not_applicable(loss, reason):
    spec = {**SPEC, "run": {**RUN, "loss": loss, "gamma": None}}
    result = calibrate(run_logits(), spec)
    skipped = {entry["method"]: entry["reason"] for entry in result.fits["not_applicable"]}
    assert set(skipped) == {name for name, method in METHODS.items() if method.needs_training_gamma}
    assert reason in skipped["psi"]
    assert not {row["method"] for row in result.rows} & set(skipped)


def test_rows_of_undefined_metrics_say_so():
    """Logits so flat that no confidence exceeds 0.99."""
    val, test = (Split(split.logits * 1e-3, split.labels) for split in (run_logits().val, run_logits().test))
    result = calibrate(RunLogits(val, test), {**SPEC, "methods": ["none"]})
    values = {row["metric"]: row["value"] for row in result.rows}
    assert values["s99_share"] == 0.0
    assert {metric for metric, value in values.items() if math.isnan(value)} == {"s99_accuracy"}


def test_entry_point_writes_the_same_bytes_every_time(tmp_path):
    write_logits(tmp_path / "logits.npz", run_logits())
    for number in (1, 2):
        calibrate_script.main(
            [
                "--spec",
                json.dumps(SPEC),
                "--logits",
                str(tmp_path / "logits.npz"),
                "--metrics",
                str(tmp_path / f"{number}/metrics.csv"),
                "--fits",
                str(tmp_path / f"{number}/fits.json"),
                "--surfaces",
                str(tmp_path / f"{number}/surfaces.npz"),
                "--diagnostics",
                str(tmp_path / f"{number}/diagnostics.json"),
            ]
        )
    for name in ("metrics.csv", "fits.json", "surfaces.npz", "diagnostics.json"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
