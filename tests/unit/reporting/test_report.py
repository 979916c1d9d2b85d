import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from focalcal.reporting import layout
from focalcal.reporting.report import render as report
from focalcal.reporting.report import sources as report_sources
from focalcal.reporting.report.html_parts import Markup, badge, markdown_table_html, plain_table
from focalcal.reporting.tables.formats import Cell, Column, Table, to_markdown
from focalcal.workflow.grid import build_grid
from tests.e2e.made_results import ROOT, MadeResults

BLOCKS = [
    {
        "datasets": ["gauss-3"],
        "models": ["mlp"],
        "losses": ["ce", "focal-2"],
        "seeds": [1, 2],
        "recipe": "quickstart",
    }
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = MadeResults(tmp_path_factory.mktemp("made"), BLOCKS, failed=["gauss-3/mlp/ce/seed2"])
    folder.write_runs()
    folder.write_tables()
    folder.write_figures()
    return folder


def test_report_of_a_small_folder(made):
    text = made.write_report().read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "gauss-3/mlp/ce/seed2" in text
    assert "loss is NaN in epoch 2 &lt;b&gt;" in text
    for product in (*layout.TABLES, *layout.FIGURES):
        assert f"-{product.name}" in text
    assert json.loads((made.results / "config.json").read_text()) == made.config


def test_report_lists_the_fits_at_an_end_of_what_was_searched(made):
    paths = sorted((made.results / "calibration").rglob("fits.json"))
    fits = [json.loads(path.read_text())["fits"] for path in paths if "ce/seed2" not in path.as_posix()]
    searched = [fit for run in fits for fit in run if fit["criterion"]]
    stopped = sum("gamma" in fit["boundaries"] for fit in searched)
    assert 0 < stopped < len(searched)
    text = made.write_report().read_text(encoding="utf-8")
    assert f"Of {len(searched)} fits, {stopped} stopped at an end of what was searched." in text


def test_missing_runs_are_told(made):
    more = [{**BLOCKS[0], "seeds": [1, 2, 3]}]
    config = made.config | {"runs": more}
    sources = report_sources.read_sources(made.results, config, build_grid(config, ROOT))
    assert sources.missing == ["gauss-3/mlp/ce/seed3", "gauss-3/mlp/focal-2/seed3"]
    assert "3 of 6 runs failed or are missing" in report.report_html(sources, "Title")


def test_provenance_counts_runs(made):
    sources = report_sources.read_sources(made.results, made.config, made.grid)
    assert sources.provenance["torch"] == {"2": 4}
    assert sources.code == {"a.py": {"0123": 4}}
    assert json.loads(report.summary_line(sources))["failed"] == 1


def test_costs_are_summed_by_rule(tmp_path):
    for name, seconds, memory in (("train/a", 10, 100), ("train/b", 5, "NA"), ("aggregate", 1, "-")):
        path = tmp_path / f"{name}.tsv"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"s\tmax_rss\n{seconds}\t{memory}\n")
    train, aggregate = report_sources.read_costs(tmp_path)
    assert (train.rule, train.jobs, train.seconds, train.longest, train.memory) == ("train", 2, 15, 10, 100)
    assert (aggregate.rule, aggregate.memory) == ("aggregate", None)


def test_plain_tables_escape_all_but_markup():
    html = plain_table("t", "a < b", ("x", "n"), [("<i>", 3), (Markup("<b>ok</b>"), ("2 s", 2.0))])
    assert "a &lt; b" in html
    assert "&lt;i&gt;" in html
    assert "<b>ok</b>" in html
    assert 'data-v="2.0">2 s' in html


def test_markdown_tables_become_html_again():
    columns = (Column("a", "A | b"), Column("x", "X", ("mean",), ranked=True))
    rows = (
        (Cell("p|q <1>"), Cell("\N{MINUS SIGN}1.50 ± 0.10", (-1.5,), best=True)),
        (Cell("r"), Cell("2.00", (2.0,))),
    )
    html = markdown_table_html("t", to_markdown(Table("t", "Title *x*", columns, (rows,), ("Note_1",))))
    assert "<caption>Title *x*</caption>" in html
    assert "A | b</th>" in html
    assert "<td>p|q &lt;1&gt;</td>" in html
    assert 'data-v="-1.50"><b>\N{MINUS SIGN}1.50 ± 0.10</b>' in html
    assert 'data-v="2.00">2.00' in html
    assert "<li>Note_1</li>" in html


def test_verdicts_are_read_without_colour():
    assert "✗" in badge("not reproduced")
    assert "not reproduced" in badge("not reproduced")


def run(dataset, model, imported=None):
    return SimpleNamespace(
        dataset=dataset, model=model, path=f"{dataset}/{model}/ce/seed1", imported=imported
    )


def test_places_and_their_files():
    places = layout.Places([run("b", "m"), run("a", "m", imported="mine")])
    assert places.all == ["a/m", "b/m"]
    assert places.trained == ["b/m"]
    files = places.all_figures("png")
    assert "results/figures/surface/a/m.png" in files
    assert "results/figures/training/a/m.png" not in files
    wildcards = SimpleNamespace(dataset="a", model="m")
    assert places.files("x/{run}.json")(wildcards) == ["x/a/m/ce/seed1.json"]
    assert places.files("x/{run}.json", trained=True)(wildcards) == []


def test_every_product_has_a_place_and_a_caption():
    products = (*layout.TABLES, *layout.FIGURES, *layout.PLACE_FIGURES)
    pages = {name for name, _, _ in report.PAGES}
    for product in products:
        assert product.page in pages
        assert product.caption.endswith(".")
    for figure in (*layout.FIGURES, *layout.PLACE_FIGURES):
        assert (ROOT / "report" / f"{figure.name}.rst").is_file()


def test_templates_are_complete():
    folder = Path(report.TEMPLATES)
    assert {path.name for path in folder.iterdir()} == {"report.html", "report.css", "report.js"}
