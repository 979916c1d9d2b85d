"""The stage's settings, checks and entry points."""

import csv
import json
import math
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml

from focalcal.theory.settings import TheorySettings, job_settings, theory_settings
from workflow_scripts import theory_checks, theory_tables

ROOT = Path(__file__).parents[3]
RULES = ("theory_tables", "theory_checks")
SMALL = json.dumps(
    {
        "gammas": [1.0, 4.0],
        "scanned_gammas": [],
        "certified_gammas": [1.0],
        "matching_classes": [2],
        "matching_gammas": [1.0, 2.0, 3.0],
        "sensitivity_gammas": [1.0],
        "sensitivity_max_logits": [],
        "chosen_gammas": [-0.5, 2.0],
        "chosen_classes": [2],
        "linear_model_samples": 40,
        "linear_model_steps": 5,
        "linear_model_seeds": [0],
        "linear_model_spreads": [0.5],
    }
)


def read_csv(path):
    with path.open(newline="") as source:
        return list(csv.DictReader(source))


def test_defaults_are_written_out_in_the_example():
    written = yaml.safe_load((ROOT / "configs" / "theory-default.yaml").read_text())["theory"]
    assert theory_settings(written) == TheorySettings()
    assert set(written) == set(asdict(TheorySettings()))


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """Return a folder with everything that a small theory stage writes."""
    folder = tmp_path_factory.mktemp("theory")
    theory_tables.main(["--spec", SMALL, "--output", str(folder)])
    theory_checks.main(["--spec", SMALL, "--output", str(folder)])
    return folder


def test_margins_that_must_hold_hold_and_those_that_fail_fail(stage):
    checks = {row["name"]: float(row["value"]) for row in read_csv(stage / "checks.csv")}
    false_statements = {
        "k24_prop3_printed_margin",
        "k24_confidence_gain_margin_4",
        "k24_confidence_gain_margin_10",
        "k24_h_convexity_margin",
        "negative_gamma_any_margin",
    }
    margins = {name: value for name, value in checks.items() if "margin" in name}
    assert {name for name, value in margins.items() if value < -1e-12} == false_statements
    assert checks["c21_fewest_classes_anywhere"] == 4
    assert checks["c21_fewest_classes_near_uniform"] == 5
    assert checks["m20_lambert_argument_least_at"] == pytest.approx(0.5)


def test_numbers_of_false_and_imprecise_statements(stage):
    checks = {row["name"]: row for row in read_csv(stage / "checks.csv")}
    values = {name: float(row["value"]) for name, row in checks.items()}
    # C21 Eq. (11) at gamma 1, by hand: h(v) = v / (1 - v - v log v).
    h = {v: v / (1 - v - v * math.log(v)) for v in (0.40, 0.19, 0.41)}
    assert values["k24_other_class_rise_gamma_1"] == pytest.approx(
        h[0.40] / sum(h.values()) - 0.40, abs=1e-12
    )
    assert checks["k24_other_class_rise_gamma_1"]["detail"].startswith("q, Psi(q) = 0.4, 0.19, 0.41, ")
    assert values["m20_ratio_at_05_from_gamma_7"] == pytest.approx(0.5**7 * (1 + 7 * math.log(2)))
    assert values["m20_log_loss_local_minima"] == 1
    assert values["m20_log_loss_bend_in_t"] < 0 < values["m20_log_loss_bend_in_inverse_t"]
    assert max(values[f"k24_corner_difference_gamma_{gamma}"] for gamma in ("0.5", "2")) < 1


def test_entry_points_write_what_they_say(stage):
    tables = {path.stem: read_csv(path) for path in stage.glob("*.csv")}
    records = {path.stem: json.loads(path.read_text()) for path in stage.glob("*.json")}
    assert [float(row["gamma"]) for row in tables["bounds"]] == [1.0, 4.0]
    assert records["bounds"]["critical_gamma"] == pytest.approx(5.63538, abs=1e-6)
    assert records["certificate"]["theorem_a"][0]["gamma"] == 1.0
    assert len(tables["matching"]) == 3
    assert [row["gamma"] for row in tables["chosen_gammas"]] == ["-0.5", "2.0"]
    assert {row["loss"] for row in tables["linear_model"]} == {"ce", "focal-1"}
    assert all(tables.values())


def written(entry_point, spec, folder):
    """Return what an entry point writes for a spec, by file."""
    entry_point.main(["--spec", json.dumps(spec), "--output", str(folder)])
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("entry_point", [theory_tables, theory_checks])
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
    assert {key for rule in RULES for key in job_settings({}, rule)} == set(asdict(TheorySettings()))


def test_checks_of_later_papers_by_hand(stage):
    values = {row["name"]: float(row["value"]) for row in read_csv(stage / "checks.csv")}
    binary = lambda p: -p * math.log(p) - (1 - p) * math.log(1 - p)  # noqa: E731
    # At T = 2 the odds 9 : 1 of the first token become 3 : 1.
    fall = binary(0.75) + 0.75 * math.log(1000) - binary(0.9) - 0.9 * math.log(1000)
    assert values["ml26_sequence_entropy_change"] == pytest.approx(fall)
    # Beside five classes of 1/5, q / p of a rare class is 1 / phi(1/5), up to its own phi - 1 of about 1e-5.
    phi = [0.8**g - g * 0.8 ** (g - 1) * 0.2 * math.log(0.2) for g in (0.5, 1.0, 2.0, 3.0, 5.0)]
    assert values["s26_rare_class_ratio"] == pytest.approx(1 / max(phi), rel=1e-4)
    assert values["ml26_scalers_that_change_predictions"] == 1
    assert values["k24_inverse_margin"] > -1e-12
    assert values["k24_gradient_difference"] < 1e-8
