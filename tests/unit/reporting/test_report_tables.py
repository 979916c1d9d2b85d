import json

import pandas as pd
import pytest

from focalcal.reporting.layout import TABLES, table_names
from focalcal.reporting.records.measurements import COLUMNS, summarise
from focalcal.reporting.report.html_parts import table_html
from focalcal.reporting.statistics.headline import headline
from focalcal.reporting.statistics.tests import rank_methods
from focalcal.reporting.tables import overview as report_tables
from focalcal.reporting.tables import statistics as statistics_tables
from focalcal.reporting.tables.bound_hits import bound_hits_table
from focalcal.reporting.tables.summary import write_score_tables, write_statistics_tables

MINUS = "\N{MINUS SIGN}"


def rows(dataset, loss, seed, scores, metric="ece", split="test"):
    return [
        (
            dataset,
            "mlp",
            loss,
            str(seed),
            method,
            criterion,
            0.5 if method == "fts" else 0.0,
            1.5,
            split,
            metric,
            value,
        )
        for (method, criterion), value in scores.items()
    ]


@pytest.fixture
def frame():
    """Seven seeds of two losses: FTS is lower by 0.01 with ce, higher by 0.002 with focal-2; raw is 0.1."""
    found = []
    for loss, fts in (("ce", 0.02), ("focal-2", 0.032)):
        for seed in range(7):
            noise = seed * 1e-4
            found += rows(
                "digits",
                loss,
                seed,
                {("none", ""): 0.1, ("ts", "ece"): 0.03 + noise, ("fts", "ece"): fts + noise},
            )
            found += rows("digits", loss, seed, {("none", ""): 0.9}, metric="accuracy")
            found += rows("digits", loss, seed, {("ts", "ece"): 0.01, ("fts", "ece"): 0.005}, split="val")
    return pd.DataFrame(found, columns=list(COLUMNS))


def cells(table, header):
    (index,) = [i for i, column in enumerate(table.columns) if column.header == header]
    return [row[index].text for row in table.rows]


def test_overview_has_a_row_a_setting_and_marks_the_best(frame):
    table = report_tables.overview_table(summarise(frame), "ece", "ece")
    assert cells(table, "Training loss") == ["Cross-entropy", "Focal \N{GREEK SMALL LETTER GAMMA} = 2"]
    spans = {(c.span, c.header): i for i, c in enumerate(table.columns)}
    best = [[row[spans["ECE (%)", name]].best for name in ("as trained", "TS", "FTS")] for row in table.rows]
    assert best == [[False, False, True], [False, True, False]]
    assert table.rows[0][spans["ECE (%)", "FTS"]].numbers[0] == pytest.approx(0.0203)


def test_overview_of_nothing_is_none():
    assert report_tables.overview_table({}, "ece", "ece") is None


def test_comparisons_by_hand(frame):
    table = statistics_tables.comparisons_table(frame, "ece", "ece")
    first = table.rows[0]
    assert [cell.text for cell in first[:4]] == [f"FTS {MINUS} TS", "all", "14", "2"]
    assert first[4].numbers[0] == pytest.approx((-0.01 + 0.002) / 2)
    assert first[6].text == "7 / 0 / 7"
    scopes = dict(zip(cells(table, "Runs of"), table.rows, strict=True))
    # Seven runs that all agree: the exact p is 2 / 2^7, doubled by Holm over two losses.
    assert scopes["loss ce"][7].numbers[0] == pytest.approx(2 / 128)
    assert scopes["loss ce"][8].numbers[0] == pytest.approx(4 / 128)
    assert scopes["loss ce"][9].text == "lower"
    assert scopes["loss focal-2"][9].text == "higher"


def test_too_few_runs_are_called_so(frame):
    few = frame[frame["seed"].isin(["0", "1"])]
    table = statistics_tables.comparisons_table(few, "ece", "ece")
    assert set(cells(table, "What follows")) == {"too few runs"}


def test_no_comparison_without_two_calibrators(frame):
    assert statistics_tables.comparisons_table(frame[frame["method"] == "ts"], "ece", "ece") is None


def test_samples_say_which_intervals_leave_zero_out():
    run = {"dataset": "d", "model": "m", "loss": "ce", "seed": 1}
    base = {"metric": "ece", "first": 0.01, "second": 0.02, "difference": -0.01}
    record = {"run": run, "samples": 100, "criterion": "ece"}
    intervals = [(-0.02, -0.001), (-0.02, 0.001), (0.001, 0.02)]
    records = [{**record, "comparisons": [{**base, "low": low, "high": high}]} for low, high in intervals]
    assert cells(statistics_tables.samples_table(records), "What follows") == [
        "FTS lower",
        "open",
        "FTS higher",
    ]
    assert statistics_tables.samples_table([{**record, "comparisons": []}]) is None


def test_ranking_names_what_is_joined_with_the_best():
    scores = [[1.0, 2.0, 3.0], [1.0, 3.0, 2.0], [1.0, 2.0, 3.0]] * 5
    ranking = rank_methods(scores, ["ce / fts", "ce / ts", "ce / none"])
    table = statistics_tables.ranking_table(ranking, "ece", "ece")
    assert cells(table, "Calibrator") == ["FTS", "TS", "as trained"]
    assert cells(table, "Not separated from the best") == ["yes", "no", "no"]
    assert statistics_tables.ranking_table(None, "ece", "ece") is None


def fit(method, criterion, gamma, temperature, boundaries=()):
    found = {"method": method, "criterion": criterion, "boundaries": dict(boundaries)}
    return found | {"parameters": {"gamma": gamma, "temperature": temperature}}


def test_fits_at_an_end_are_listed_with_their_seeds():
    none, inside = fit("none", None, 0.0, 1.0), fit("ts", "ece", 0.0, 1.2)
    highest = fit("ts", "ece", 0.0, 5.0, {"temperature": "high"})
    corner = fit("fts", "nll", -0.5, 0.01, {"temperature": "low", "gamma": "low"})
    run = {"dataset": "d", "model": "m", "loss": "ce"}
    fitted = [
        (run | {"seed": "1"}, [none, highest, corner]),
        (run | {"seed": "2"}, [none, inside]),
        (run | {"seed": "3"}, [none, highest]),
    ]
    table = bound_hits_table(fitted)
    assert [[cell.text for cell in row[5:]] for row in table.rows] == [
        ["TS", "ECE", "T", "5", "highest", "2 of 3", "1, 3"],
        ["FTS", "log-loss", "\N{GREEK SMALL LETTER GAMMA}", f"{MINUS}0.5", "lowest", "1 of 1", "1"],
        ["FTS", "log-loss", "T", "0.01", "lowest", "1 of 1", "1"],
    ]
    assert table.notes[0] == "Of 4 fits, 3 stopped at an end of what was searched."
    assert bound_hits_table(fitted[1:2]).notes[0].startswith("Of 1 fits, none stopped")


def test_headline(frame):
    found = headline(frame, "ece", "ece")
    assert [entry["text"] for entry in found["means"]] == ["10.00 %", "3.03 %", "2.63 %"]
    assert found["comparison"]["verdict"] == "no difference shown"
    assert found["comparison"]["answer"].startswith("Not shown")
    assert found["counts"]["runs"] == 14
    assert found["best_as_trained"] == [
        {"place": "digits · mlp", "loss": "Cross-entropy", "score": "10.00", "cross_entropy": "10.00"}
    ]
    json.dumps(found)


@pytest.mark.parametrize(
    ("loss", "seeds", "start"), [("ce", 7, "Yes"), ("focal-2", 7, "No"), ("ce", 2, "Cannot be said")]
)
def test_answers(frame, loss, seeds, start):
    part = frame[(frame["loss"] == loss) & frame["seed"].isin([str(seed) for seed in range(seeds)])]
    assert headline(part, "ece", "ece")["comparison"]["answer"].startswith(start)


def test_headline_without_fts(frame):
    assert headline(frame[frame["method"] != "fts"], "ece", "ece")["comparison"] is None


def test_every_table_is_written_in_four_spellings(frame, tmp_path):
    write_score_tables(frame, "ece", "ece", tmp_path)
    write_statistics_tables(frame, [], [], "ece", "ece", tmp_path)
    for table in TABLES:
        for suffix in ("csv", "md", "tex", "html"):
            assert (tmp_path / f"{table.name}.{suffix}").is_file()
    assert "No run at hand" in (tmp_path / "c21_ece.md").read_text()
    assert set(table_names("scores")) | set(table_names("statistics")) == {table.name for table in TABLES}


def test_html_escapes_and_carries_numbers(frame):
    summary = summarise(frame.replace({"dataset": {"digits": "<d&>"}}))
    html = table_html(report_tables.overview_table(summary, "ece", "ece"))
    assert "&lt;d&amp;&gt;" in html
    assert "<d&>" not in html
    assert 'data-v="0.0203' in html
    assert html.count("<tbody>") == 1


def test_words_begin_small_within_a_phrase_and_abbreviations_stay():
    inline = {metric: report_tables.SCALES[metric].inline for metric in report_tables.SCALES}
    assert inline == {"ece": "ECE (%)", "adaece": "AdaECE (%)", "nll": "log-loss", "accuracy": "accuracy (%)"}
