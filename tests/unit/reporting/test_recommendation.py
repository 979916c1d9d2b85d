import json

import numpy as np
import pytest

from focalcal import __main__ as command
from focalcal.calibration import saved
from focalcal.calibration.methods.prior import PriorTemperatureScaling
from focalcal.reporting.figures.reliability import before_after
from focalcal.reporting.recommendation import (
    advice_text,
    failure_text,
    reason_text,
    summary_text,
)
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.tables.recommended import recommended
from focalcal.reporting.tables.table import to_markdown
from focalcal.reporting.text import MINUS
from focalcal.training.appearance import loss_label
from tests.unit.calibration.logit_sets import noisy
from tests.unit.reporting.made_recommendation import made_recommendation
from tests.unit.reporting.made_sources import SETTINGS

RUNS = [("d", "m", "focal-2", 1, "ts"), ("d", "m", "ce", 2, "none"), ("d", "m", "ce", 1, "ts")]


@pytest.fixture
def sources(tmp_path):
    (tmp_path / "tables").mkdir()
    lines = [",".join(map(str, run[:4])) + ",,ok" for run in RUNS]
    text = "\n".join(["dataset,model,loss,seed,imported,status", *lines])
    (tmp_path / "tables" / "runs.csv").write_text(text + "\n", encoding="utf-8")
    for dataset, model, loss, seed, method in RUNS:
        path = tmp_path / "recommended" / dataset / model / loss / f"seed{seed}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(made_recommendation({"loss": loss}, method)), encoding="utf-8")
    return Sources(tmp_path, SETTINGS)


def test_the_table_says_for_each_run_what_to_use_and_how_sure_that_is(sources):
    made = recommended(sources)
    rows = made.frame.to_dict("records")
    assert [(row["loss"], row["seed"], row["use"]) for row in rows] == [
        ("ce", "1", "temperature scaling (TS)"),
        ("ce", "2", "leave it as it is"),
        ("focal-2", "1", "temperature scaling (TS)"),
    ]
    assert [row["runner_up"] for row in rows] == ["as trained", "TS", "as trained"]
    first = rows[0]
    assert (first["nll_before"], first["nll_after"]) == (0.6, 0.5)
    text = to_markdown(made)
    assert "| 84 % |" in text
    assert f"0.6000 | 0.5000 | {MINUS}0.10000 | {MINUS}0.12000 to {MINUS}0.08000 | 5.00 | 4.00 |" in text
    assert "calibrator.predict_proba(logits)" in text.replace("\\", "")


def test_the_figure_has_one_diagram_per_loss(sources):
    drawn = before_after(sources)
    titles = [axis.get_title(loc="left") or axis.get_title() for axis in drawn.axes]
    assert [title for title in titles if title] == [loss_label("ce"), loss_label("focal-2")]
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == ["as trained", "recommended"]


def test_the_summary_has_the_candidates():
    text = summary_text(made_recommendation({})["recommendation"])
    assert text.startswith("Recommendation: temperature scaling (TS).\n")
    assert "TS *                 1            0.60000  0.10000 ± 0.05000        0.50000" in text
    assert f"Test log-loss 0.60000 → 0.50000 (95 % interval of the change {MINUS}0.12000 to " in text
    assert "ECE 5.00 % → 4.00 %." in text
    assert "ts-m20: it is not fitted by log-loss" in text
    assert "Caution" not in text


@pytest.mark.parametrize(
    ("method", "log_ratio", "words"),
    [
        ("ts", 3.4, "The samples are 30 times as probable after temperature scaling as before."),
        ("ts", 1e5, "The samples are more than 1,000 times as probable after temperature scaling as before."),
        ("none", 2.0, "The samples are not 10 times as probable after temperature scaling as before."),
    ],
)
def test_few_samples_are_the_reason_that_is_given(method, log_ratio, words):
    found = made_recommendation({}, method)["recommendation"]
    text = reason_text(found | {"log_ratio": log_ratio, "samples": {"val": 99, "test": 1000}})
    assert text.startswith("99 validation samples cannot tell calibrators apart (2,000 are needed)")
    assert text.endswith(words)


@pytest.mark.parametrize(
    ("gap", "cause"),
    [
        (0.5, "3,000 validation samples were too few, or misled by chance."),
        (4.2, "as trained, the log-loss is 4 standard errors higher on the test samples. Find out why."),
        (-6.0, "as trained, the log-loss is 6 standard errors lower on the test samples. Find out why."),
    ],
)
def test_a_choice_that_is_worse_than_the_model_as_trained_is_a_failure_and_no_advice(gap, cause):
    found = made_recommendation({})["recommendation"] | {"split_gap": gap}
    assert failure_text(found) == ""
    none, ts, fts = found["candidates"]
    worse = ts | {"test": ts["test"] | {"nll_change": 0.015, "low": 0.01, "high": 0.02}}
    failed = found | {"candidates": [none, worse, fts]}
    assert "(+0.01500, 95 % interval +0.01000 to +0.02000). Do not use it." in failure_text(failed)
    assert cause in failure_text(failed)
    assert summary_text(failed).startswith("Failure: On the test samples temperature scaling")
    assert "Recommendation:" not in summary_text(failed)
    assert advice_text("mine", failed, "mine.json", 0.95)["change"] == ""


@pytest.fixture
def logits_file(tmp_path):
    (val, val_labels), (test, test_labels) = noisy(3200, 3, 4.0, 1), noisy(900, 3, 4.0, 2)
    path = tmp_path / "mine.npz"
    np.savez(path, val_logits=val, val_labels=val_labels, test_logits=test, test_labels=test_labels)
    return path


@pytest.mark.parametrize("name", ["mine.npz", "", "mine.png", "mine"])
def test_no_file_but_a_json_file_is_replaced(logits_file, capsys, name):
    before = logits_file.read_bytes()
    output = str(logits_file.parent / name)
    assert command.main(["recommend", str(logits_file), "--methods", "ts", "--output", output]) == 2
    assert capsys.readouterr().err.startswith(f"error: --output is {output!r}; allowed: ")
    assert [path.name for path in logits_file.parent.iterdir()] == ["mine.npz"]
    assert logits_file.read_bytes() == before


def test_one_command_recommends_saves_and_draws(logits_file, capsys):
    assert command.main(["recommend", str(logits_file), "--methods", "none", "ts", "vs"]) == 0
    printed = capsys.readouterr().out
    # The logits are twice those of the Bayes classifier, 2 for the label, and then times 2.
    assert "Recommendation: temperature scaling with a prior (TS-P)." in printed
    path = logits_file.with_suffix(".recommended.json")
    assert str(path) in printed
    assert path.with_suffix(".png").stat().st_size > 1000
    logits = np.load(logits_file)["test_logits"]
    lines = printed[printed.index("from focalcal import load") :].partition("\nWritten")[0]
    values = {"logits": logits}
    exec(lines, values)  # noqa: S102  the lines that a user is told to paste
    assert np.array_equal(values["probabilities"], saved.load(path).predict_proba(logits))
    assert json.loads(path.read_text("utf-8"))["source"]["file"] == "mine.npz"


def test_without_test_samples_every_number_is_cross_validated_and_says_so():
    found = made_recommendation({})["recommendation"] | {"samples": {"val": 3000, "test": 0}}
    text = summary_text(found)
    assert "Cross-validated log-loss 0.60000 → 0.50000 (95 % interval" in text
    assert "no test samples: all numbers come from 5-fold cross-validation on the 3,000 samples that" in text
    assert "held-out ECE (%)" in text
    assert "test log-loss" not in text
    none, ts, fts = found["candidates"]
    worse = ts | {"test": ts["test"] | {"nll_change": 0.015, "low": 0.01, "high": 0.02}}
    failure = failure_text(found | {"candidates": [none, worse, fts]})
    assert failure.startswith("In cross-validation temperature scaling (TS)")
    assert "test samples differ" not in failure


@pytest.fixture
def one_split(tmp_path):
    logits, labels = noisy(2400, 3, 4.0, 1)
    np.savez(tmp_path / "one.npz", logits=logits, labels=labels)
    return tmp_path / "one.npz"


def test_one_labelled_split_is_enough(one_split, capsys):
    assert command.main(["recommend", str(one_split), "--methods", "ts"]) == 0
    assert "all numbers come from 4-fold cross-validation on the 2,400 samples" in capsys.readouterr().out
    content = json.loads(one_split.with_suffix(".recommended.json").read_text("utf-8"))["recommendation"]
    assert content["samples"] == {"val": 2400, "test": 0}
    for candidate in content["candidates"]:
        assert candidate["test"]["nll"] == pytest.approx(candidate["held_out_nll"], abs=1e-12)


def test_one_split_can_be_divided(one_split, capsys):
    assert command.main(["recommend", str(one_split), "--methods", "ts", "--split", "0.25"]) == 0
    assert "Test log-loss" in capsys.readouterr().out
    content = json.loads(one_split.with_suffix(".recommended.json").read_text("utf-8"))
    assert content["recommendation"]["samples"] == {"val": 600, "test": 1800}
    arrays = np.load(one_split)
    rows = np.sort(np.random.RandomState(0).permutation(2400)[:600])
    expected = PriorTemperatureScaling().fit(arrays["logits"][rows], arrays["labels"][rows])
    assert content["calibrator"]["parameters"] == expected.to_record()["parameters"]


@pytest.mark.parametrize("share", ["0", "1", "half", "nan"])
def test_a_share_is_between_0_and_1(one_split, capsys, share):
    with pytest.raises(SystemExit):
        command.main(["recommend", str(one_split), "--split", share])
    assert f"argument --split: {share!r}; allowed: above 0 and below 1, as 0.5" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.npz"], "error: missing.npz does not exist; allowed: an existing file; correct the path\n"),
        (["mine.npz", "--methods", "tss"], 'error: --methods is "tss"; allowed: '),
        (
            ["mine.npz", "--loss", "focall-3"],
            "error: --loss: unknown loss 'focall-3'; allowed: adafocal, ce, focal-GAMMA,",
        ),
        (["mine.mat"], "error: mine.mat has the suffix '.mat'; allowed: .npz, .npy, "),
    ],
)
def test_mistakes_are_one_line_with_exit_code_2(arguments, message, capsys):
    assert command.main(["recommend", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(message)
    assert printed.err.count("\n") == 1
    assert printed.out == ""
