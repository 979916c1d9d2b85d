"""Accepting a change of code or packages for finished results."""

import json

import pytest

from focalcal import __main__ as command
from focalcal.common.csv_rows import read_rows
from focalcal.common.errors import UserError
from focalcal.config import accepted
from focalcal.config.provenance import code_digests, made_by
from focalcal.reporting.records import accept
from tests.unit.reporting.test_collect import TRAINED, Finished
from workflow_scripts import collect as entry_point

LOSSES = "focalcal/training/losses.py"
NOW = code_digests("focalcal/training/losses.py")[LOSSES]


def changed(before, after):
    return {"rule": "train", "changes": [{"before": before, "after": after}], "records": []}


class TestAccepted:
    def test_what_a_change_led_to_becomes_what_was_before(self):
        known = accepted.Accepted([changed("a.py=1", "a.py=2"), changed("numpy==1.0", "numpy==2.0")])
        assert known.before("train", ["a.py=2", "b.py=2", "numpy==2.0"]) == ("a.py=1", "b.py=2", "numpy==1.0")
        assert known.before("calibrate", ["a.py=2"]) == ("a.py=2",)
        assert known.before("train", ["a.py=3"]) == ("a.py=3",)

    def test_a_new_file_is_left_out_and_one_that_is_gone_is_kept(self):
        known = accepted.Accepted([changed(None, "new.py=1"), changed("old.py=1", None)])
        assert known.before("train", ["a.py=1", "new.py=1"]) == ("a.py=1", "old.py=1")
        assert known.before("train", ["new.py=2"]) == ("new.py=2", "old.py=1")
        assert known.before("train", ["old.py=2"]) == ("old.py=2",)
        assert known.before("train", ["new.py=1"], whole=False) == ()
        assert known.digests("train", {"new.py": "1"}) == {"old.py": "1"}

    def test_two_changes_of_a_file_lead_to_the_first_version(self):
        known = accepted.Accepted([changed("a.py=1", "a.py=2"), changed("a.py=1", "a.py=3")])
        for line in ("a.py=1", "a.py=2", "a.py=3"):
            assert known.before("train", [line]) == ("a.py=1",)

    def test_predicting_shares_the_code_of_training(self):
        known = accepted.Accepted([changed("a.py=1", "a.py=2"), changed("old.py=1", None)])
        assert known.before("dump_logits", ["a.py=2", "b.py=1"]) == ("a.py=1", "b.py=1")

    def test_another_file_in_its_place_is_refused(self, tmp_path):
        (tmp_path / accepted.FILE).write_text('[{"rule": "train"}]')
        with pytest.raises(
            UserError, match=r"accepted\.json is not what `focalcal accept` writes; delete it"
        ):
            accepted.read(tmp_path)


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A folder of finished runs, whose losses were in another version."""
    finished = Finished(tmp_path)
    monkeypatch.chdir(tmp_path)
    finished.change(TRAINED, "train", lambda record: record["provenance"]["code"].update({LOSSES: "0"}))
    return finished


def run(*arguments):
    return command.main(["accept", *arguments])


def test_without_a_reason_changes_are_listed_and_nothing_is_accepted(results, capsys):
    assert run() == 0
    said = capsys.readouterr().out
    assert f"train, 1 finished:\n  {LOSSES}: 0 -> {NOW}\n" in said
    assert 'accept them with: --reason "..."' in said
    assert not (results.results / accepted.FILE).exists()


def test_an_accepted_change_is_collected_and_recorded(results, capsys):
    assert "see `focalcal accept`" in results.refusal()
    assert run("--reason", "only  renamed", "--by", "A. Reviewer") == 0
    (entry,) = json.loads((results.results / accepted.FILE).read_text("utf-8"))
    assert (entry["rule"], entry["reason"], entry["by"]) == ("train", "only renamed", "A. Reviewer")
    assert entry["changes"] == [{"before": f"{LOSSES}=0", "after": f"{LOSSES}={NOW}"}]
    assert entry["records"] == [TRAINED]
    assert entry["date"].endswith("+00:00")
    collect_tables(results)
    trained, imported = runs_of(results)
    assert trained["accepted"] == "only renamed (A. Reviewer)"
    assert imported["accepted"] == ""
    assert run() == 0
    assert "Code and packages are those that results was made with" in capsys.readouterr().out


def collect_tables(results):
    entry_point.main(["--spec", json.dumps(results.grid.runs_spec()), "--results", str(results.results)])


def runs_of(results):
    return read_rows(results.results / "tables" / "runs.csv")


def test_a_file_that_is_gone_or_new_and_another_package_are_accepted(results):
    def edit(record):
        code = record["provenance"]["code"]
        code["focalcal/gone.py"] = "1"
        del code[LOSSES]
        record["provenance"]["packages"]["torch"] = "0.1+cu1"

    results.change(TRAINED, "train", edit)
    assert run("--reason", "moved") == 0
    (entry,) = json.loads((results.results / accepted.FILE).read_text("utf-8"))
    found = {(change["before"], change["after"]) for change in entry["changes"]}
    assert {("focalcal/gone.py=1", None), (None, f"{LOSSES}={NOW}")} < found
    assert any(before == "torch==0.1" and after.startswith("torch==2") for before, after in found)
    collect_tables(results)


def test_a_later_change_is_accepted_on_top(results, monkeypatch):
    run("--reason", "first")
    real = code_digests("workflow_scripts/train.py", LOSSES, "focalcal/training/models/mlp.py")
    later = {**real, LOSSES: "9"}
    lines = tuple(f"{path}={digest}" for path, digest in later.items())
    original = accept.code_lines

    def edited(entry_point, *modules):
        return lines if entry_point.endswith("train.py") else original(entry_point, *modules)

    monkeypatch.setattr(accept, "code_lines", edited)
    run("--reason", "second")
    known = accepted.read(results.results)
    assert known.before("train", [f"{LOSSES}=9"])[0] == f"{LOSSES}=0"
    assert known.of_run(TRAINED).startswith("first (")
    assert "; second (" in known.of_run(TRAINED)


def test_settings_are_still_refused(results):
    run("--reason", "fine")
    results.change(TRAINED, "train", lambda record: record["spec"].update(another=1))
    refusal = results.refusal()
    assert "its training settings differ in another" in refusal
    assert "focalcal accept" not in refusal


def test_different_versions_of_a_file_are_refused_unless_runs_are_named(results, capsys):
    other = results.results / "runs/gauss-3/mlp/ce/seed2/run.json"
    other.parent.mkdir()
    spec = {"dataset": "gauss-3", "model": "mlp", "loss": "ce", "recipe": {}}
    record = made_by(spec, "workflow_scripts/train.py", LOSSES, "focalcal/training/models/mlp.py")
    other.write_text(json.dumps(record))
    assert run("--reason", "fine") == 2
    error = capsys.readouterr().err
    assert f"finished jobs of `train` had different versions of {LOSSES} ({TRAINED}: {LOSSES}=0; " in error
    assert "name the runs of one version" in error
    assert run("--reason", "fine", TRAINED) == 0


@pytest.mark.usefixtures("results")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--reason", " "], "--reason is empty; allowed: why the change changes no number"),
        (["gauss-3/none"], "there is no run 'gauss-3/none' in results; allowed: DATASET/MODEL/LOSS/SEED"),
        (["--results", "nowhere"], "nowhere has no finished runs; allowed: a folder of results"),
    ],
)
def test_mistakes_end_in_one_line(capsys, arguments, message):
    assert run(*arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.usefixtures("results")
def test_an_installed_package_without_rules_says_where_to_start_it(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(accept, "ROOT", tmp_path)
    assert run() == 2
    assert "has no rules; allowed: that of a clone" in capsys.readouterr().err
