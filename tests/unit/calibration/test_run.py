import csv
import json

import numpy as np
import pytest

from focalcal.calibration import logits_io
from focalcal.calibration import run as engine
from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.calibration.logits_io import RunLogits, Split
from focalcal.calibration.tidy import COLUMNS
from focalcal.common.errors import UserError
from tests.unit.calibration.logit_sets import brute_force, like_a_network
from workflow_scripts import calibrate

RUN = {"dataset": "toy", "model": "mlp", "loss": "focal-2", "seed": 3, "gamma": 2.0}
SPEC = {
    "run": RUN,
    "methods": list(METHODS),
    "criteria": ["nll", "ece", "adaece"],
    "gammas": [-0.5, 1, 5],
    "temperatures": {"start": 0.1, "stop": 3.0, "step": 0.1},
    "bins": 15,
    "adaece": "split",
}


def run_logits(seed=0, classes=5):
    return RunLogits(
        Split(*like_a_network(150, classes, seed)), Split(*like_a_network(120, classes, seed + 1))
    )


@pytest.fixture(scope="module")
def result():
    return engine.calibrate(run_logits(), SPEC)


def test_rows_have_the_contract_columns_and_cover_every_method_split_and_metric(result):
    assert all(tuple(row) == COLUMNS for row in result.rows)
    keys = [(row["method"], row["criterion"], row["split"], row["metric"]) for row in result.rows]
    assert len(keys) == len(set(keys))
    assert {row["method"] for row in result.rows} == set(METHODS)
    assert {row["split"] for row in result.rows} == {"val", "test"}
    for method in METHODS:
        assert {row["metric"] for row in result.rows if row["method"] == method} >= set(list(METRICS)[:-1])


def test_criteria_are_reported_separately_and_empty_where_nothing_is_fitted(result):
    criteria = {
        method: {row["criterion"] for row in result.rows if row["method"] == method} for method in METHODS
    }
    assert criteria["none"] == criteria["psi"] == {None}
    assert criteria["ts"] == criteria["fts"] == criteria["psi-ts"] == {"nll", "ece", "adaece"}
    assert criteria["fts-continuous"] == {"nll"}
    assert criteria["ts-focal"] == {"focal"}


def test_accuracy_is_the_same_for_all_methods(result):
    for split in ("val", "test"):
        values = {row["value"] for row in result.rows if (row["split"], row["metric"]) == (split, "accuracy")}
        assert len(values) == 1


def test_uncalibrated_rows_have_gamma_zero_and_temperature_one(result):
    rows = [row for row in result.rows if row["method"] == "none"]
    assert {(row["gamma"], row["temperature"]) for row in rows} == {(0.0, 1.0)}


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
    assert all(fit["bound_hit"] in ("none", "low", "high") for fit in fits.values())
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


def test_methods_that_need_a_training_gamma_are_recorded_as_not_applicable():
    spec = {**SPEC, "run": {**RUN, "loss": "ce", "gamma": None}}
    result = engine.calibrate(run_logits(), spec)
    skipped = {entry["method"]: entry["reason"] for entry in result.fits["not_applicable"]}
    assert set(skipped) == {name for name, method in METHODS.items() if method.needs_training_gamma}
    assert "loss 'ce' is not focal loss of one known gamma" in skipped["psi"]
    assert not {row["method"] for row in result.rows} & set(skipped)


def test_undefined_metrics_have_no_row():
    """Logits so flat that no confidence exceeds 0.99."""
    val, test = (Split(split.logits * 1e-3, split.labels) for split in (run_logits().val, run_logits().test))
    result = engine.calibrate(RunLogits(val, test), {**SPEC, "methods": ["none"]})
    values = {row["metric"]: row["value"] for row in result.rows}
    assert values["s99_share"] == 0.0
    assert "s99_accuracy" not in values


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"methods": ["ts", "tss"]}, "calibration methods has 'tss'; allowed: none, ts, fts"),
        ({"criteria": ["brier"]}, "calibration criteria has 'brier'; allowed: nll, ece, adaece"),
        ({"gammas": [-2]}, r"calibration settings: gamma has values from -2\.0 to -2\.0; expected -1 to 100"),
        ({"bins": 0}, "calibration settings: bins is 0"),
        ({"adaece": "x"}, "calibration settings: variant is 'x'"),
        ({"temperatures": {"start": 0.0, "stop": 1.0, "step": 0.5}}, "not finite and above 0"),
        ({"temperatures": {"start": 1e-5, "stop": 1.0, "step": 0.5}}, "temperature has values from 1e-05"),
        ({"temperatures": {"start": 1.0, "stop": 1.0, "step": 0}}, "the step of temperatures is 0"),
        ({"temperatures": {"start": 2.0, "stop": 1.0, "step": 0.5}}, r"temperatures has shape \(0,\)"),
        ({"methods": ["fts-line"], "gammas": [1.0]}, "'calibration.gammas' .* 'fts-line' searches between"),
        (
            {"methods": ["fts-continuous"], "gammas": [1.0, 1.001]},
            "'calibration.gammas' .* 'fts-continuous' searches between",
        ),
    ],
)
def test_wrong_settings_are_one_line_user_errors(change, message):
    with pytest.raises(UserError, match=message):
        engine.calibrate(run_logits(), {**SPEC, **change})


def test_entry_point_writes_the_same_bytes_every_time(tmp_path):
    logits_io.write(tmp_path / "logits.npz", run_logits())
    for number in (1, 2):
        calibrate.main(
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
            ]
        )
    for name in ("metrics.csv", "fits.json", "surfaces.npz"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def test_files_can_be_read_back(tmp_path, result):
    origin = {"spec": SPEC}
    engine.write(result, origin, tmp_path / "m.csv", tmp_path / "f.json", tmp_path / "s.npz")
    with (tmp_path / "m.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["value"]) for row in rows] == [row["value"] for row in result.rows]
    assert rows[0]["criterion"] == ""
    assert json.loads((tmp_path / "f.json").read_text()) == json.loads(json.dumps(result.fits | origin))
    with np.load(tmp_path / "s.npz") as archive:
        np.testing.assert_array_equal(archive["ece"], result.surfaces["ece"])
