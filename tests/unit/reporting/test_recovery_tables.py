import csv
import json
import math

import numpy as np
import pytest
from scipy import stats

from focalcal.reporting.records.recovery import interval, read_settings
from focalcal.reporting.tables import recovery as recovery_tables
from focalcal.reporting.tables.formats import to_markdown
from tests.unit.reporting.recovery_project import set_status, write_project
from workflow_scripts import recovery_tables as script

LOSSES = ["ce", "focal-1", "focal-5", "focal-1+ls-0.1", "flsd-53"]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    results = tmp_path_factory.mktemp("project") / "results"
    return results, write_project(results, LOSSES, noise=0.05)


@pytest.fixture(scope="module")
def tables(project, tmp_path_factory):
    results, runs = project
    output = tmp_path_factory.mktemp("tables")
    spec = json.dumps({"runs": runs, "human": ["gauss-3"]})
    script.main(["--spec", spec, "--results", str(results), "--output", str(output)])
    names = ("posterior", "paradigms", "diagnosis", "human")
    return {name: read_csv(output / f"recovery_{name}.csv") for name in names}


def read_csv(path):
    with path.open(encoding="utf-8", newline="") as source:
        return list(csv.DictReader(source))


def rows_of(table, loss, **where):
    return [row for row in table if row["loss"] == loss and all(row[k] == v for k, v in where.items())]


def test_an_interval_is_that_of_students_t():
    values = [0.1, 0.4, 0.25, 0.3]
    low, high = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
    found = interval(values)
    assert found.seeds == 4
    assert found.mean - found.half_width == pytest.approx(low, rel=1e-12)
    assert found.mean + found.half_width == pytest.approx(high, rel=1e-12)
    assert interval([0.5]).half_width is None


def test_psi_recovers_and_the_lowest_divergence_is_marked(tables):
    rows = {row["method"]: row for row in rows_of(tables["posterior"], "Focal γ = 5")}  # noqa: RUF001
    assert list(rows) == ["raw", "TS (log-loss)", "FTS (log-loss)", "Ψ"]
    assert float(rows["Ψ"]["kl_mean"]) < 0.01
    assert float(rows["Ψ"]["kl_mean"]) < float(rows["TS (log-loss)"]["kl_mean"])
    assert [name for name, row in rows.items() if row["kl_best"] == "1"] == ["Ψ"]
    assert rows["Ψ"]["kl_seeds"] == "2"
    assert float(rows["Ψ"]["kl_half_width"]) > 0
    assert rows["raw"]["training_samples"] == "30"
    assert rows["TS (log-loss)"]["temperature_mean"] == "0.4"


def test_an_unknown_gamma_is_said_and_never_guessed(tables):
    told = "Psi does not apply: loss 'flsd-53' is not focal loss of one known gamma"
    psi = rows_of(tables["posterior"], "FLSD-53", method="Ψ")[0]
    assert (psi["kl_mean"], psi["note"]) == ("", told)
    for row in rows_of(tables["paradigms"], "FLSD-53"):
        assert (row["gamma_value"], row["ece_psi_mean"], row["note"]) == ("", "", told)
    assert rows_of(tables["diagnosis"], "FLSD-53")[0]["note"] == told


def test_paradigms_are_told_apart(tables):
    found = {}
    for row in tables["paradigms"]:
        found.setdefault(row["paradigm"], []).append(row["loss"])
    plain = ["Cross-entropy", "Focal γ = 1", "Focal γ = 5", "FLSD-53"]  # noqa: RUF001
    assert found == {
        "Standard": plain,
        "TS_FL": plain,
        "LS": ["Focal γ = 1, smoothing 0.1"],  # noqa: RUF001
    }
    row = rows_of(tables["paradigms"], "Focal γ = 5", paradigm="Standard")[0]  # noqa: RUF001
    difference = float(row["ece_psi_mean"]) - float(row["ece_raw_mean"])
    assert float(row["difference_mean"]) == pytest.approx(difference, abs=1e-12)
    assert difference < 0


def test_a_difference_is_paired_over_seeds(project):
    setting = next(s for s in read_settings(*project) if s.loss == "focal-1")
    row = next(row for row in recovery_tables.paradigm_table([setting]).rows if row[0].text == "Standard")
    pairs = np.subtract(setting.values("psi", "ece"), setting.values("none", "ece"))
    expected = stats.t.ppf(0.975, 1) * np.std(pairs, ddof=1) / math.sqrt(2)
    assert row[9].numbers == (pytest.approx(pairs.mean()), pytest.approx(expected), 2)


def test_diagnosis_of_minimisers_is_true(tables):
    row = rows_of(tables["diagnosis"], "Focal γ = 5")[0]  # noqa: RUF001
    assert float(row["region_under_mean"]) == 1.0
    assert float(row["psi_under_mean"]) == 1.0
    assert float(row["psi_right_mean"]) == float(row["true_under_mean"]) > 0.99
    assert rows_of(tables["diagnosis"], "Cross-entropy")[0]["note"] == "proper loss: Ψ is the identity"


def test_human_labels_have_a_table_of_their_own(tables):
    for human, posterior in zip(tables["human"], tables["posterior"], strict=True):
        assert human["kl_mean"] == posterior["kl_mean"]


def test_runs_that_failed_do_not_count(tmp_path):
    results = tmp_path / "results"
    runs = write_project(results, ["ce", "focal-1"], seeds=(1, 2))
    set_status(results, "gauss-3/mlp/focal-1/seed2", "diverged")
    for seed in (1, 2):
        set_status(results, f"gauss-3/mlp/ce/seed{seed}", "diverged")
    settings = read_settings(results, runs)
    assert [(setting.loss, len(setting.records)) for setting in settings] == [("focal-1", 1)]
    table = recovery_tables.posterior_table(settings)
    assert "±" not in to_markdown(table).split("\n\n")[1]


def test_no_runs_make_empty_tables():
    assert recovery_tables.posterior_table([]).rows == []
    assert recovery_tables.paradigm_table([]).rows == []
    assert recovery_tables.human_table([]).rows == []
