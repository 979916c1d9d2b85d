"""Settings, checks and entry points of the theory stage."""

from workflow_scripts.entry import run

import csv
import json
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml

from focalcal.theory.checks import TheoryCheck, check_rows, simplex_sample
from focalcal.theory.settings import READ_BY, TheorySettings, job_settings, theory_settings
from focalcal.theory.tables import csv_text
from workflow_scripts import (
    theory_bounds,
    theory_certificate,
    theory_checks,
    theory_linear_model,
    theory_matching,
    theory_thresholds,
)

ROOT = Path(__file__).parents[3]
SMALL = json.dumps(
    {
        "gammas": [1.0, 4.0],
        "scanned_gammas": [],
        "certified_gammas": [1.0],
        "matching_classes": [2],
        "matching_gammas": [1.0, 2.0, 3.0],
        "sensitivity_gammas": [1.0],
        "sensitivity_max_logits": [],
        "linear_model_samples": 40,
        "linear_model_steps": 5,
        "linear_model_seeds": [0],
        "linear_model_spreads": [0.5],
    }
)

OUTPUTS = {
    theory_bounds: ("--output", "--summary"),
    theory_certificate: ("--output",),
    theory_matching: ("--output", "--fits"),
    theory_thresholds: ("--thresholds", "--overconfidence", "--gamma-star"),
    theory_linear_model: ("--output", "--history"),
}


def read_csv(path):
    with path.open(newline="") as source:
        return list(csv.DictReader(source))


def test_defaults_are_written_out_in_the_example():
    written = yaml.safe_load((ROOT / "configs" / "theory-default.yaml").read_text())["theory"]
    assert theory_settings(written) == TheorySettings()
    assert set(written) == set(asdict(TheorySettings()))


def test_csv_keeps_every_digit():
    value = 0.1 + 0.2
    assert float(csv_text([{"a": value}]).splitlines()[1]) == value


def test_check_rows():
    assert check_rows({"x": TheoryCheck(1, "there")}) == [{"name": "x", "value": 1.0, "detail": "there"}]


def test_simplex_sample():
    rows = simplex_sample(5, 800)
    assert rows.shape == (800, 5)
    assert rows.min() > 0
    assert abs(rows.sum(axis=1) - 1).max() < 1e-15
    assert rows.max() > 0.99
    assert (rows.max(axis=1) < 0.25).any()


def test_margins_that_must_hold_hold_and_those_that_fail_fail(tmp_path):
    theory_checks.main(["--output", str(tmp_path / "checks.csv")])
    checks = {row["name"]: float(row["value"]) for row in read_csv(tmp_path / "checks.csv")}
    false_statements = {
        "k24_prop3_printed_margin",
        "k24_confidence_gain_margin_4",
        "k24_confidence_gain_margin_10",
        "k24_h_convexity_margin",
    }
    margins = {name: value for name, value in checks.items() if "margin" in name}
    assert {name for name, value in margins.items() if value < -1e-12} == false_statements
    assert checks["c21_fewest_classes_anywhere"] == 4
    assert checks["c21_fewest_classes_near_uniform"] == 5
    assert checks["m20_lambert_argument_least_at"] == pytest.approx(0.5)


def test_entry_points_write_what_they_say(tmp_path):
    paths = {
        name: tmp_path / f"{name}.csv"
        for name in ("bounds", "matching", "fits", "over", "tau", "star", "lm", "h")
    }
    theory_bounds.main(
        ["--spec", SMALL, "--output", str(paths["bounds"]), "--summary", str(tmp_path / "b.json")]
    )
    theory_certificate.main(["--spec", SMALL, "--output", str(tmp_path / "c.json")])
    theory_matching.main(["--spec", SMALL, "--output", str(paths["matching"]), "--fits", str(paths["fits"])])
    arguments = ["--thresholds", str(paths["tau"]), "--overconfidence", str(paths["over"])]
    theory_thresholds.main(["--spec", SMALL, *arguments, "--gamma-star", str(paths["star"])])
    theory_linear_model.main(["--spec", SMALL, "--output", str(paths["lm"]), "--history", str(paths["h"])])
    assert [float(row["gamma"]) for row in read_csv(paths["bounds"])] == [1.0, 4.0]
    assert json.loads((tmp_path / "b.json").read_text())["critical_gamma"] == pytest.approx(5.63538, abs=1e-6)
    assert json.loads((tmp_path / "c.json").read_text())["theorem_a"][0]["gamma"] == 1.0
    assert len(read_csv(paths["matching"])) == 3
    assert {row["loss"] for row in read_csv(paths["lm"])} == {"ce", "focal-1"}
    assert all(path.stat().st_size > 0 for path in paths.values())


def written(entry_point, spec, folder):
    """Return the files that an entry point writes for a spec, by option."""
    folder.mkdir()
    paths = {option: folder / option for option in OUTPUTS[entry_point]}
    entry_point.main(["--spec", json.dumps(spec), *(str(text) for pair in paths.items() for text in pair)])
    return {option: path.read_bytes() for option, path in paths.items()}


@pytest.mark.parametrize("entry_point", OUTPUTS)
def test_a_rule_is_given_every_setting_that_it_reads(entry_point, tmp_path):
    unusual = {
        "max_logit": 9.0,
        "scanned_gammas": [2.0],
        "matching_max_logit": 4.0,
        "sensitivity_max_logits": [2.0],
        "fit_ranges": [[0.0, 3.0]],
    }
    whole = {**json.loads(SMALL), **unusual}
    assert set(whole) == set(asdict(TheorySettings()))
    given = job_settings(whole, entry_point.__name__.rpartition(".")[2])
    assert written(entry_point, given, tmp_path / "given") == written(entry_point, whole, tmp_path / "whole")


def test_every_setting_is_read_by_a_rule():
    assert {key for keys in READ_BY.values() for key in keys} == set(asdict(TheorySettings()))


def test_a_default_that_is_written_out_changes_no_job():
    for rule in READ_BY:
        assert job_settings({}, rule) == job_settings(asdict(TheorySettings()), rule)


def test_a_bad_spec_ends_in_one_line_and_exit_code_2(tmp_path, capsys):
    arguments = ["--spec", '{"x": 1', "--output", str(tmp_path / "a"), "--summary", str(tmp_path / "b")]
    assert run(theory_bounds.main, arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("error: --spec is not JSON: ")
    assert captured.err.count("\n") == 1
    assert not list(tmp_path.iterdir())
