"""Charts: what they show, what can be chosen, and how they enter the report."""

import csv
import io
import json
from pathlib import Path

import pytest

from focalcal.reporting.charts import grammar
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.report.runtime import read_chart
from tests.unit.reporting.made_sources import SETTINGS, metrics_of, product

RUN = {"dataset": "d", "model": "net", "loss": "focal-3", "seed": 1}
RUNS = [{**RUN, "seed": str(seed), "status": "ok", "imported": "", "path": ""} for seed in (1, 2)]
GAMMA = "\N{GREEK SMALL LETTER GAMMA}"


def comparison(difference, metric="nll", method="fts"):
    return {
        "method": method,
        "against": "ts",
        "criterion": "nll",
        "metric": metric,
        "value": 0.5 + difference,
        "against_value": 0.5,
        "difference": difference,
        "low": difference - 0.01,
        "high": difference + 0.01,
        "error": 0.005,
        "z": difference / 0.005,
    }


def diagnostics(*found):
    """Return the diagnostics of runs with seeds 1, 2, ..., as sources keep them."""
    return [
        (RUNS[seed - 1], {"run": {**RUN, "seed": seed}, "comparisons": comparisons})
        for seed, comparisons in enumerate(found, 1)
    ]


def specification(name, **read):
    """Return the Vega-Lite specification of a chart; None if it has nothing to show."""
    declared = product(name, "chart")
    made = declared.build(Sources(Path("nowhere"), SETTINGS, product=declared, cache=read))
    return None if made is None else json.loads(grammar.to_json(made, declared))


def rows(made):
    """Return the rows of a chart's data."""
    (text,) = [data for data in made["datasets"].values() if isinstance(data, str)]
    return list(csv.DictReader(io.StringIO(text)))


def choices(made):
    return {parameter["bind"]["name"]: parameter for parameter in made["params"]}


def test_differences_are_means_over_seeds_in_the_units_that_people_see():
    found = diagnostics(
        [comparison(-0.02), comparison(0.01, "ece")], [comparison(-0.04), comparison(0.03, "ece")]
    )
    made = specification("difference_by_network", runs=RUNS, diagnostics=found)
    shown = {row["Measured by"]: row for row in rows(made)}
    assert shown["Log-loss"]["Network"] == f"Focal {GAMMA} = 3 · net · d"
    assert [float(shown["Log-loss"][name]) for name in ("Difference", "low", "high", "n")] == pytest.approx(
        [-0.03, -0.04, -0.02, 2]
    )
    assert float(shown["ECE (%)"]["Difference"]) == pytest.approx(2)
    assert choices(made).keys() == {"Calibrator", "Measured by", "Chosen by", "Dataset", "Training loss"}
    assert choices(made)["Calibrator"]["value"] == "FTS"
    assert choices(made)["Dataset"]["bind"]["options"] == [None, "d"]


def test_networks_are_ordered_by_the_numbers_in_their_names():
    models = ["net10", "net9", "other"]
    found = [
        (RUNS[0], {"run": {**RUN, "model": model}, "comparisons": [comparison(0.1)]}) for model in models
    ]
    shown = rows(specification("difference_by_network", runs=RUNS, diagnostics=found))
    assert [row["Network"].split(" · ")[1] for row in shown] == ["net9", "net10", "other"]


def test_without_fts_there_is_nothing_to_compare():
    found = diagnostics([comparison(0.1, method="none")])
    assert specification("difference_by_network", runs=RUNS[:1], diagnostics=found) is None


SCORES = """d,net,ce,1,none,,0,1,test,nll,0.5
d,net,ce,1,none,,0,1,test,ece,0.05
d,net,ce,1,ts,nll,0,2,test,nll,0.4
d,net,ce,1,ts,nll,0,2,test,ece,0.02
d,net,ce,1,fts,nll,1,2,test,nll,0.3
d,net,ce,1,fts,nll,1,2,test,ece,0.03
"""


def test_the_explorer_has_every_metric_as_a_choice(tmp_path):
    made = specification("score_explorer", metrics=metrics_of(tmp_path, SCORES))
    assert choices(made)["Metric"]["bind"]["options"] == ["Log-loss", "ECE (%)"]
    found = [(row["Calibrator"], row["Chosen by"], row["Log-loss"], row["ECE (%)"]) for row in rows(made)]
    assert found == [
        ("as trained", "", "0.5", "5"),
        ("TS", "log-loss", "0.4", "2"),
        ("FTS", "log-loss", "0.3", "3"),
    ]


def test_calibrators_are_compared_with_ts_by_both_scores(tmp_path):
    made = specification("ece_against_log_loss", metrics=metrics_of(tmp_path, SCORES))
    found = {row["Calibrator"]: (float(row["Log-loss"]), float(row["ECE"])) for row in rows(made)}
    assert found["FTS"] == pytest.approx((-0.1, 1))
    assert found["as trained"] == pytest.approx((0.1, 3))
    without = SCORES.replace(",ts,", ",fts-line,")
    assert specification("ece_against_log_loss", metrics=metrics_of(tmp_path, without)) is None


def test_calibrators_are_ranked_by_log_loss(tmp_path):
    runs = [{**RUN, "loss": "ce", "seed": "1", "status": "ok", "imported": "", "published": "x"}]
    made = specification("calibrators_ranked", metrics=metrics_of(tmp_path, SCORES), runs=runs)
    ranked = [row for row in rows(made) if row["Measured by"] == "Log-loss"]
    assert [row["Calibrator"] for row in ranked] == ["FTS", "TS", "as trained"]
    assert [float(row["Difference"]) for row in ranked] == pytest.approx([-0.1, 0, 0.1])
    assert {row["low"] for row in ranked} == {""}, "one network has no interval over networks"


def test_a_chart_in_the_report_cannot_end_its_element(tmp_path):
    path = tmp_path / "made.json"
    path.write_text(json.dumps({"data": {"values": [{"a": "</script>"}]}, "mark": "point", "encoding": {}}))
    assert "<" not in read_chart(path)
    assert "</script>" in json.dumps(json.loads(read_chart(path)))
    path.write_text("null")
    assert read_chart(path) is None
