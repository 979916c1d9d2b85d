import json
import re

import pytest

from focalcal.calibration.catalogue import declaring_files
from focalcal.calibration.files.tidy import COLUMNS
from focalcal.common.csv_rows import read_rows
from focalcal.common.errors import UserError
from focalcal.common.io import write_json
from focalcal.config.grid import build_grid
from focalcal.config.provenance import ROOT, made_by
from focalcal.reporting.records import collect
from tests.project import merged_config
from tests.unit.reporting.made_sources import both_ways, compared
from workflow_scripts import collect as entry_point

TRAINED, IMPORTED = "gauss-3/mlp/ce/seed1", "own/net/focal-3/seed5"
PAIRS = {TRAINED: "gauss-3/mlp", IMPORTED: "own/net"}
RECORDS = {
    "train": "runs/{}/run.json",
    "import_logits": "runs/{}/run.json",
    "calibrate": "calibration/{}/fits.json",
    "recommend": "recommended/{}.json",
    "recover": "recovery/{}/recovery.json",
}
MODULES = {
    "train": ["focalcal/training/losses.py", "focalcal/training/models/mlp.py"],
    "calibrate": declaring_files(merged_config()["calibration"]["methods"]),
    "recommend": declaring_files(merged_config()["calibration"]["methods"]),
}
"""What the jobs of these runs load by name."""


class Finished:
    """The records and tables that a trained and an imported run leave, as far as they are collected."""

    def __init__(self, folder):
        logits = folder / "mine.npz"
        logits.touch()
        block = {"datasets": ["gauss-3"], "models": ["mlp"], "losses": ["ce"], "seeds": [1]}
        entry = {"path": str(logits), "dataset": "own", "model": "net", "loss": "focal-3", "seed": 5}
        self.config = {
            **merged_config(),
            "runs": [{**block, "recipe": "quickstart"}],
            "logits": {"mine": entry},
            "published": [],
        }
        self.results = folder / "results"
        write_json(self.results / "data" / "gauss-3.json", {"checksum": "0"})
        for run in self.grid:
            self._write_run(run)

    @property
    def grid(self):
        return build_grid(self.config, ROOT)

    def _write_run(self, run):
        recovery = self.grid.recovery_spec(run.dataset, run.model)
        specs = {
            "calibrate": self.grid.calibration_spec(run),
            "recommend": self.grid.recommendation_spec(run),
            "recover": recovery,
        }
        if run.imported is None:
            specs["train"] = self.grid.training_spec(run)
        else:
            specs["import_logits"] = self.grid.import_spec(run)
        for rule, spec in specs.items():
            origin = made_by(spec, f"workflow_scripts/{rule}.py", *MODULES.get(rule, ()))
            record = {"status": "ok", "data_checksum": "0", **origin}
            if rule == "train":
                record["final"] = {"train_error": 0.25}
            if rule == "recommend":
                record["recommendation"] = {"method": "ts-prior"}
            write_json(self.path(PAIRS[run.path] if rule == "recover" else run.path, rule), record)
        found = compared("any", -0.03, 0.01)
        write_json(self.results / collect.diagnostics_file(run.path), {"comparisons": [found]})
        for stage, where in (("calibration", run.path), ("recovery", PAIRS[run.path])):
            identity = [run.dataset, run.model, run.loss, str(run.seed)]
            row = ",".join([*identity, stage, "", "", "", "test", "ece", "0.1"])
            (self.results / stage / where / "metrics.csv").write_text(f"{','.join(COLUMNS)}\n{row}\n")

    def path(self, run, rule):
        return self.results / RECORDS[rule].format(run)

    def change(self, run, rule, edit):
        record = json.loads(self.path(run, rule).read_text("utf-8"))
        edit(record)
        write_json(self.path(run, rule), record)

    def refusal(self):
        with pytest.raises(UserError) as caught:
            collect.read_records(self.grid, self.results)
        return str(caught.value)


@pytest.fixture
def finished(tmp_path):
    return Finished(tmp_path)


def test_what_belongs_together_becomes_four_tables(finished):
    entry_point.main(
        [
            *("--spec", json.dumps(finished.grid.runs_spec()), "--results", str(finished.results)),
        ]
    )
    tables = finished.results / "tables"
    rows = [line.split(",") for line in (tables / "metrics.csv").read_text("utf-8").splitlines()]
    assert rows[0] == list(COLUMNS)
    assert [row[0] for row in rows[1:]] == ["gauss-3", "gauss-3", "own", "own"]
    assert [row[4] for row in rows[1:]] == ["calibration", "recovery"] * 2
    trained, imported = read_rows(tables / "runs.csv")
    assert (trained["imported"], trained["train_error"], trained["epochs"]) == ("", "0.25", "40")
    assert (imported["imported"], imported["train_error"], imported["epochs"]) == ("yes", "", "")
    assert (trained["bins"], trained["recovery_bins"]) == ("15", "10")
    assert trained["temperature_grid"] == "0.01 5 0.01"
    compared_runs = read_rows(tables / "comparisons.csv")
    assert [(row["dataset"], row["seed"], row["difference"]) for row in compared_runs] == [
        ("gauss-3", "1", "-0.03"),
        ("own", "5", "-0.03"),
    ]
    effects = read_rows(tables / "effects.csv")
    assert {(row["origin"], row["verdict"]) for row in effects} == {
        ("trained here on simulated data", "lower"),
        ("imported logits", "lower"),
    }
    assert imported["gamma_grid"] == "-0.5 -0.25 0.05 0.25 0.37 0.5 0.75 1 5"


@pytest.mark.parametrize(
    ("run", "rule", "noun", "again"),
    [
        (TRAINED, "train", "training", "train"),
        (TRAINED, "calibrate", "calibration", f"results/calibration/{TRAINED}/fits.json"),
        ("gauss-3/mlp", "recover", "recovery", "results/recovery/gauss-3/mlp/recovery.json"),
        (TRAINED, "recommend", "recommendation", f"results/recommended/{TRAINED}.json"),
        (IMPORTED, "import_logits", "import", "import_logits"),
        (IMPORTED, "calibrate", "calibration", f"results/calibration/{IMPORTED}/fits.json"),
        ("own/net", "recover", "recovery", "results/recovery/own/net/recovery.json"),
    ],
)
class TestStale:
    def test_settings_are_refused_by_name(self, finished, run, rule, noun, again):
        finished.change(run, rule, lambda record: record["spec"].update(another=1))
        refusal = finished.refusal()
        assert f"({run}: its {noun} settings differ in another); allowed" in refusal
        assert re.search(rf"add `--forcerun \S*{again}` to the same command", refusal)

    def test_code_is_refused_by_name(self, finished, run, rule, noun, again):
        file = "focalcal/common/errors.py"
        finished.change(run, rule, lambda record: record["provenance"]["code"].update({file: "0"}))
        refusal = finished.refusal()
        assert f"({run}: its {noun} code differs in {file}); allowed" in refusal
        assert re.search(rf"add `--forcerun \S*{again}` to the same command", refusal)


@pytest.mark.parametrize("recommend", [True, False])
def test_the_recommended_method_of_each_run_is_compared_as_auto(finished, recommend):
    finished.config = {**finished.config, "report": {**finished.config["report"], "recommend": recommend}}
    rows = [*both_ways("any", -0.03, 0.01), compared("any", -0.02, 0.01, method="sms")]
    rows.append(compared("any", -0.5, 0.1, criterion="ece"))
    for run, method in ((TRAINED, "sms"), (IMPORTED, "fts")):
        write_json(finished.results / collect.diagnostics_file(run), {"comparisons": rows})
        finished.change(
            run, "recommend", lambda record, method=method: record["recommendation"].update(method=method)
        )
    arguments = ["--spec", json.dumps(finished.grid.runs_spec()), "--results", str(finished.results)]
    entry_point.main(arguments)
    found = read_rows(finished.results / "tables" / "comparisons.csv")
    names = ("dataset", "against", "criterion", "value", "difference", "error", "z")
    auto = [tuple(row[name] for name in names) for row in found if row["method"] == "auto"]
    expected = [
        ("gauss-3", "ts", "nll", "0.48", "-0.02", "0.01", "-2"),
        ("own", "ts", "nll", "0.47", "-0.03", "0.01", "-3"),
        ("own", "fts", "nll", "0.47", "0", "0", "0"),
    ]
    assert auto == (expected if recommend else [])
    methods = {row["method"] for row in read_rows(finished.results / "tables" / "effects.csv")}
    assert ("auto" in methods) is recommend


@pytest.mark.parametrize("section", ["calibration", "recovery"])
def test_edited_bins_are_seen_in_every_run(finished, section):
    finished.config = {**finished.config, section: {**finished.config[section], "bins": 20}}
    refusal = finished.refusal()
    for run, pair in PAIRS.items():
        subject = pair if section == "recovery" else run
        assert f"{subject}: its {section} settings differ in bins" in refusal


def test_human_labels_do_not_make_a_recovery_stale(finished):
    # They reach it as a file that another job makes.
    labels = {"cifar10": "download"}
    finished.config = {**finished.config, "recovery": {**finished.config["recovery"], "human_labels": labels}}
    assert len(collect.read_records(finished.grid, finished.results)) == 2


def test_other_data_need_both_rules(finished):
    finished.change(TRAINED, "train", lambda record: record.update(data_checksum="1"))
    refusal = finished.refusal()
    assert f"({TRAINED}: its data differ); allowed" in refusal
    assert re.search(r"add `--forcerun \S*/data/gauss-3\.json train` to the same command", refusal)
