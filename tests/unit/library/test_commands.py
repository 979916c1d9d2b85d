"""The command `focalcal`: from files to calibrated probabilities, comparisons and answers for programs."""

import json
import re

import numpy as np
import pytest

import focalcal
from focalcal.__main__ import COMMANDS, main
from focalcal.calibration.files.logits_io import ABSENT
from focalcal.reporting.advice import task_lines
from tests.project import ROOT
from tests.unit.calibration.logit_sets import noisy

LOGITS, LABELS = noisy(400, 3, 4.0, 1)
"""Twice as large as those of the Bayes classifier, times two."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a file of logits and its recommendation."""
    path = tmp_path_factory.mktemp("command")
    np.savez(path / "mine.npz", logits=LOGITS, labels=LABELS)
    assert main(["recommend", str(path / "mine.npz"), "--methods", "ts"]) == 0
    return path


def lines(capsys, *argv):
    """Return what a command prints, its standard error and its exit code."""
    code = main([str(part) for part in argv])
    captured = capsys.readouterr()
    return captured.out, captured.err, code


@pytest.mark.parametrize("name", [None, *COMMANDS])
def test_every_command_explains_itself(name, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([*([name] if name else []), "--help"])
    assert "usage: focalcal" in capsys.readouterr().out


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".csv"])
def test_applied_probabilities_are_those_of_the_calibrator(folder, capsys, suffix):
    output = folder / f"p{suffix}"
    out, _, code = lines(
        capsys, "apply", folder / "mine.recommended.json", folder / "mine.npz", "--output", output
    )
    assert code == 0
    assert out == f"Written: {output}, 400 samples of 3 classes\n"
    match suffix:
        case ".npz":
            found = np.load(output)["probabilities"]
        case ".npy":
            found = np.load(output)
        case _:
            found = np.loadtxt(output, delimiter=",", skiprows=1)
            assert output.read_text("utf-8").startswith("prob_0,prob_1,prob_2\n")
    expected = focalcal.load(folder / "mine.recommended.json").predict_proba(LOGITS)
    np.testing.assert_array_equal(found, expected)


def test_logits_of_another_model_are_refused(folder, capsys):
    np.save(folder / "logits.npy", LOGITS[:, :2])
    _, err, code = lines(capsys, "apply", folder / "mine.recommended.json", folder / "logits.npy")
    assert code == 2
    assert "mine.recommended.json: logits has 2 classes; allowed: 3, as in what was fitted" in err


def test_answers_for_programs(folder, capsys):
    out, err, code = lines(capsys, "recommend", folder / "mine.npz", "--methods", "ts", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["method"] == "ts-prior"
    assert found["samples"] == {"val": 400, "test": 0}
    assert found["output"] == str(folder / "mine.recommended.json")
    assert "held-out log-loss" in err
    out, _, _ = lines(capsys, "apply", found["output"], folder / "mine.npz", "--json")
    assert json.loads(out)["samples"] == 400


class TestComparison:
    """Two models of the same samples."""

    def files(self, folder, second):
        np.savez(folder / "a.npz", logits=LOGITS, labels=LABELS)
        np.savez(folder / "b.npz", logits=second, labels=LABELS)
        return folder / "a.npz", folder / "b.npz"

    def test_a_temperature_is_no_difference_after_calibration(self, tmp_path, capsys):
        out, _, code = lines(capsys, "compare", *self.files(tmp_path, LOGITS / 2.0), "--json")
        assert code == 0
        before, after = json.loads(out)["states"].values()
        assert before["high"] < 0
        losses = [scores["nll"] for scores in before["scores"]]
        assert before["nll_difference"] == pytest.approx(losses[1] - losses[0])
        assert abs(after["nll_difference"]) < 1e-6

    def test_what_the_better_model_knows_remains(self, tmp_path, capsys):
        worse = LOGITS + np.random.default_rng(0).normal(0, 8, LOGITS.shape)
        files = self.files(tmp_path, worse)
        out, _, _ = lines(capsys, "compare", *files)
        assert f"After temperature scaling, {files[0]} is better: log-loss of the second minus" in out

    def test_validation_samples_fit_and_test_samples_measure(self, tmp_path, capsys):
        for name, factor in (("a", 1.0), ("b", 3.0)):
            arrays = {
                f"{split}_{kind}": values[rows]
                for split, rows in (("val", slice(0, 200)), ("test", slice(200, 400)))
                for kind, values in (("logits", LOGITS * factor), ("labels", LABELS))
            }
            np.savez(tmp_path / f"{name}.npz", **arrays)
        out, _, _ = lines(capsys, "compare", tmp_path / "a.npz", tmp_path / "b.npz", "--json")
        found = json.loads(out)
        assert found["samples"] == 200
        assert abs(list(found["states"].values())[1]["nll_difference"]) < 1e-6

    def test_other_samples_are_refused(self, tmp_path, capsys):
        first, second = self.files(tmp_path, LOGITS)
        np.savez(second, logits=LOGITS, labels=LABELS[::-1])
        _, err, code = lines(capsys, "compare", first, second)
        assert code == 2
        assert "have different labels (400 and 400 samples); allowed: the same samples" in err


def test_tasks_are_predicted_by_fits_to_the_others(tmp_path, capsys):
    for task, rows in (("a", slice(0, 200)), ("b", slice(200, 400))):
        samples = [
            {"doc_id": i, "target": int(label), "filtered_resps": [[value, False] for value in row]}
            for i, (row, label) in enumerate(zip(LOGITS[rows].tolist(), LABELS[rows], strict=True))
        ]
        text = "\n".join(map(json.dumps, samples))
        (tmp_path / f"samples_{task}.jsonl").write_text(text, encoding="utf-8")
    out, err, code = lines(
        capsys,
        "recommend",
        tmp_path,
        "--methods",
        "ts",
        "--by-task",
        "--json",
        "--output",
        tmp_path / "o.json",
    )
    assert code == 0
    assert "understood: log-likelihoods of options: 2 tasks, 400 questions" in err
    rows = json.loads(out)["tasks"]
    fitted = focalcal.calibrator("ts-prior").fit(LOGITS[200:], LABELS[200:])
    expected = -fitted.predict_log_proba(LOGITS[:200])[np.arange(200), LABELS[:200]].mean()
    assert rows[0] == {
        "task": "a",
        "samples": 200,
        "accuracy": pytest.approx(np.mean(LOGITS[:200].argmax(axis=1) == LABELS[:200])),
        "nll_before": pytest.approx(0.7, abs=1.0),
        "nll_after": pytest.approx(expected),
    }
    assert rows[0]["nll_before"] > rows[0]["nll_after"]
    before, after = (np.mean([row[f"nll_{when}"] for row in rows]) for when in ("before", "after"))
    said = f"Lower log-loss in 2 of 2 tasks. Over all questions {before:.4f} → {after:.4f} (95 % interval"
    assert task_lines(rows)[-1].startswith(said)
    np.savez(tmp_path / "x.npz", logits=LOGITS, labels=LABELS)
    _, err, code = lines(capsys, "recommend", tmp_path / "x.npz", "--by-task")
    assert code == 2
    assert "--by-task is given, but the file names 0 tasks" in err


def test_the_example_of_the_page_on_language_models(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "language-models.md").read_text("utf-8")
    code = next(text for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "json.dumps" in text)
    exec(code, {})  # noqa: S102
    out, err, code = lines(capsys, "recommend", "logs", "--by-task")
    assert code == 0
    for line in ("understood: log-likelihoods of options: 2 tasks, 400 questions",):
        assert line in page
        assert line in err
    for line in (
        "Recommendation: focal matrix scaling (FMS).",
        "Lower log-loss in 2 of 2 tasks.",
    ):
        assert line in page
        assert line in out
    calibrator = focalcal.load("logs.recommended.json")
    assert calibrator.parameters["temperature"] == pytest.approx(2.0, rel=0.15)


def test_questions_with_fewer_options_never_get_the_others():
    logits, labels = noisy(2100, 5, 4.0, 3)
    few = np.arange(2100) % 3 == 0
    logits[few, 3:] = ABSENT
    labels[few] %= 3
    found = focalcal.recommend(logits, labels)
    probabilities = found.calibrator.predict_proba(logits)
    assert np.all(probabilities[few, 3:] == 0)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    left_out = {entry["method"]: entry["reason"] for entry in found.details["not_applicable"]}
    assert "samples differ in their number of options" in left_out["fms"]
    three = focalcal.calibrator("ts-prior").fit(logits[few, :3], labels[few])
    absent = focalcal.calibrator("ts-prior").fit(logits[few], labels[few])
    assert absent.temperature_ == pytest.approx(three.temperature_, rel=1e-5)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            ["recommend", "x.npz", "--output", "x.npz"],
            "--output is 'x.npz'; allowed: the name of a file that ends",
        ),
        (["recommend", "x.npz"], "x.npz does not exist"),
        (["apply", "x.json", "x.npz"], "x.json does not exist"),
        (["apply", "x.json", "x.npz", "--output", "x.txt"], "ends with .npz or .npy or .csv"),
        (["plan"], "has no Snakefile; allowed: the folder of the workflow"),
    ],
)
def test_mistakes_are_one_line(argv, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, err, code = lines(capsys, *argv)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("option", [["--names", "logits"], ["--first-label", "2"], ["--split", "1"]])
def test_options_say_what_is_allowed(option, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["recommend", "x.npz", *option])
    assert "error: argument" in capsys.readouterr().err
