"""Declarations of tables and figures, and what their functions may read."""

import json

import pandas as pd
import pytest

from focalcal.calibration.catalogue import METRICS
from focalcal.common.declarations import Declaration
from focalcal.reporting import products
from focalcal.reporting.products import PRODUCTS, SUFFIXES
from focalcal.reporting.records.measurements import COLUMNS, COMPARISON_COLUMNS, EFFECT_COLUMNS
from focalcal.reporting.records.sources import Sources, UndeclaredInputError
from focalcal.reporting.write import build_products
from tests.unit.reporting.made_recommendation import made_recommendation
from tests.unit.reporting.made_sources import SETTINGS, product
from tests.unit.reporting.test_simulated import simulated_rows

FACTS = {"section": "scores", "order": 1, "heading": "H", "caption": "C", "inputs": ("metrics",)}
TABLES = [entry for entry in PRODUCTS if entry.kind == "table"]


def declare(tmp_path, **facts):
    return products._product("table", Declaration("mine", tmp_path / "mine.py", FACTS | facts), {})


def test_a_wrong_key_is_an_error_that_names_the_module(tmp_path):
    with pytest.raises(ValueError, match=r"tables/mine\.py: the declaration of mine is wrong: .*'colour'"):
        declare(tmp_path, colour="red")


@pytest.mark.parametrize(
    ("fact", "value", "allowed"),
    [
        ("inputs", ("metric",), "metrics, runs"),
        ("scope", "model", "all, dataset and model"),
        ("section", "x", "answer, simulation, scores"),
    ],
)
def test_an_unknown_value_is_an_error_that_names_the_module(tmp_path, fact, value, allowed):
    wrong = value[0] if isinstance(value, tuple) else value
    with pytest.raises(ValueError, match=rf"tables/mine\.py: mine declares '{wrong}'; allowed: .*{allowed}"):
        declare(tmp_path, **{fact: value})


def test_reading_an_undeclared_setting_is_an_error(tmp_path):
    with pytest.raises(UndeclaredInputError, match="scores reads 'metric', which is not among the settings"):
        _ = Sources(tmp_path, SETTINGS).of(product("scores")).metric


def test_a_view_shares_what_its_table_declares():
    table, chart = product("arena"), product("calibrators_ranked", "chart")
    for name in ("section", "inputs", "settings", "when", "scope"):
        assert getattr(chart, name) == getattr(table, name)
    assert chart.modules == [chart.module, table.module]
    assert "{level}" in chart.caption
    assert " 90 % intervals " in chart.worded(0.9).caption


@pytest.fixture
def results(tmp_path):
    """Return a results folder with one run that has every metric, as trained."""
    run = ("digits", "mlp", "ce", "1")
    scores = [(*run, "none", "", 0.0, 1.0, "test", metric, 0.5) for metric in METRICS]
    (tmp_path / "tables").mkdir()
    pd.DataFrame(scores, columns=list(COLUMNS)).to_csv(tmp_path / "tables" / "metrics.csv", index=False)
    (tmp_path / "tables" / "effects.csv").write_text(",".join(EFFECT_COLUMNS) + "\n")
    (tmp_path / "tables" / "comparisons.csv").write_text(",".join(COMPARISON_COLUMNS) + "\n")
    (tmp_path / "tables" / "runs.csv").write_text(
        "dataset,model,loss,seed,imported,status\ndigits,mlp,ce,1,,ok\n"
    )
    (tmp_path / "simulation").mkdir()
    simulated_rows().to_csv(tmp_path / "simulation" / "divergences.csv", index=False)
    for name, content in (
        ("calibration/{}/diagnostics.json", '{"fits": [], "comparisons": []}'),
        ("calibration/{}/fits.json", '{"fits": []}'),
        ("recommended/{}.json", json.dumps(made_recommendation({}))),
    ):
        path = tmp_path / name.format("/".join(run[:3]) + "/seed1")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path


def test_every_table_reads_what_it_declares_and_is_written_in_four_formats(results):
    build_products(results, [entry.name for entry in TABLES], "table", SETTINGS)
    for entry in TABLES:
        for suffix in SUFFIXES["table"]:
            assert (results / f"{entry.stem()}.{suffix}").is_file()
    assert "No available run" in (results / "tables" / "bound_hits.md").read_text("utf-8")
    assert "| digits | mlp | Cross-entropy | as trained |  | 1 | 0.5000 |" in (
        results / "tables" / "scores.md"
    ).read_text("utf-8")
