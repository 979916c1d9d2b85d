import pandas as pd
import pytest

from focalcal.reporting.figures import forest, style
from focalcal.reporting.records.sources import Sources


def record(loss, seed, comparisons, model="m"):
    run = {"dataset": "d", "model": model, "loss": loss, "seed": seed}
    return {"run": run, "criterion": "ece", "comparisons": comparisons}


def difference(metric, value, **others):
    pair = {"method": "fts", "against": "ts", "criterion": "ece"}
    interval = {"low": value - 0.02, "high": value + 0.01}
    return {"metric": metric, "difference": value, **interval, **pair, **others}


def test_differences_are_means_over_seeds():
    found = forest.sample_differences(
        [record("ce", seed, [difference("ece", value)]) for seed, value in ((1, 0.01), (2, 0.03))]
    )
    (row,) = found.to_dict("records")
    assert row.pop("difference") == pytest.approx(0.02)
    assert row.pop("low") == pytest.approx(0.0)
    assert row.pop("high") == pytest.approx(0.03)
    assert row == {"dataset": "d", "model": "m", "loss": "ce", "metric": "ece", "criterion": "ece", "n": 2}


def test_other_pairs_are_left_out():
    rows = [difference("ece", 0.1, method="none", against="ts"), difference("ece", 0.2)]
    assert forest.sample_differences([record("ce", 1, rows)])["difference"].tolist() == [0.2]


def test_fits_selected_by_the_metric_itself_are_preferred():
    rows = pd.DataFrame({"criterion": ["ece", "nll"], "difference": [1, 2]})
    assert forest.preferred_criterion(rows, "nll", "ece")["difference"].tolist() == [2]
    assert forest.preferred_criterion(rows[:1], "nll", "ece")["difference"].tolist() == [1]
    assert forest.preferred_criterion(rows, "brier", "adaece").empty


def draw(tmp_path, records):
    sources = Sources(tmp_path, {"criterion": "ece"}, cache={"diagnostics": records, "runs": []})
    with style.house_style():
        return forest.forest(sources)


def test_forest_has_a_row_per_setting_and_log_loss_first(tmp_path):
    rows = [difference("nll", 0.2), difference("ece", 0.005)]
    records = [(None, record(loss, 1, rows, model)) for loss in ("focal-3", "ce") for model in ("a", "b")]
    left, right = draw(tmp_path, records).axes
    assert [left.get_title("left"), right.get_title("left")] == [
        "log-loss, selected by ECE",
        "ECE, selected by ECE",
    ]
    assert [text.get_text() for text in left.texts] == ["d · a, n = 1", "d · b, n = 1"]
    assert [label.get_text() for label in left.get_yticklabels()] == ["Cross-entropy", "Focal γ = 3"] * 2  # noqa: RUF001
    points = [line for line in right.lines if line.get_marker() in {"s", "o"}]
    # ECE differences are in points; rows 0 and 3 are the headings.
    assert sorted(float(line.get_xdata()[0]) for line in points) == pytest.approx([0.5] * 4)
    assert sorted(line.get_ydata()[0] for line in points) == [1, 2, 4, 5]
    # An interval without 0 has a filled point.
    assert all(line.get_markerfacecolor() == "white" for line in points)
    assert all(
        line.get_markerfacecolor() != "white" for line in left.lines if line.get_marker() in {"s", "o"}
    )


def test_nothing_to_compare_is_none(tmp_path):
    assert draw(tmp_path, []) is None
    assert draw(tmp_path, [(None, record("ce", 1, []))]) is None
