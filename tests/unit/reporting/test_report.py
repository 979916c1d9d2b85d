import json
import re
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from focalcal.common.errors import UserError
from focalcal.config.grid import build_grid
from focalcal.reporting import products
from focalcal.reporting.figures import style
from focalcal.reporting.products import SECTIONS, Product
from focalcal.reporting.recommendation import advice_text
from focalcal.reporting.records.costs import read_costs
from focalcal.reporting.report import contents as report_contents
from focalcal.reporting.report.answer import Mark, map_card
from focalcal.reporting.report.contents import read_contents, report_html
from focalcal.reporting.report.embedded import InlineImage, chart_runtime
from tests.project import ROOT
from tests.unit.reporting.made_recommendation import made_recommendation
from tests.unit.reporting.made_results import MadeResults

BLOCKS = [
    {
        "datasets": ["gauss-3"],
        "models": ["mlp"],
        "losses": ["ce", "focal-2"],
        "seeds": [1, 2],
        "recipe": "quickstart",
    }
]
EVIDENCE = "results/tables/late.csv, results/figures/each, results/theory/a.csv, results/tables/other.csv"
CHART = {
    "data": {"values": [{"a": 1}]},
    "params": [{"name": "p", "bind": {"input": "select", "options": ["</script>"]}}],
    "mark": "point",
    "encoding": {"x": {"field": "a", "type": "quantitative"}},
}
CLAIM = {
    "id": "k24-x",
    "source": "K24 Sec. 1",
    "statement": "a < b",
    "published": "1",
    "measured": "-2e-16",
    "tolerance": "0",
    "verdict": "not reproduced",
    "evidence": f'"{EVIDENCE}"',
    "setting": "networks that fit",
}


CHANGE = {"relative": -0.012, "verdict": "lower"}
RUNTIME = cache(chart_runtime)


def product(name, kind="table", section="scores", order=1, **facts):
    return Product(
        name, kind, "m.py", section, order, f"Heading of {name}", f"Caption of {name}.", (), **facts
    )


MADE = [
    product("late", order=30),
    product("each", "figure", order=20, scope="dataset and model"),
    product("early", "figure", order=10),
    product("live", "chart", order=25, unfolded=True, of="late"),
    product("elsewhere", "figure", "theory"),
    product("unmade", when="human labels"),
]


@pytest.fixture(autouse=True)
def made_products(monkeypatch):
    monkeypatch.setattr(products, "PRODUCTS", MADE)
    # Always the same, and more than half of the time that a report takes.
    monkeypatch.setattr("focalcal.reporting.report.contents.chart_runtime", RUNTIME)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a results folder with a few products, one failed run and what an earlier configuration left."""
    folder = MadeResults(tmp_path_factory.mktemp("made"), BLOCKS, failed=["gauss-3/mlp/ce/seed2"])
    folder.write_runs()
    for name in ("tables/late", "tables/unmade"):
        (folder.results / f"{name}.html").write_text(f"<table><tr><td>{name} &lt;i&gt;</td></tr></table>")
        for suffix in ("csv", "tex"):
            (folder.results / f"{name}.{suffix}").write_text(f"{suffix} of {name}")
    for name in ("when_fts_pays", "arena", "best_losses"):
        (folder.results / "tables" / f"{name}.csv").write_text("dataset,model,loss\n")
    (folder.results / "charts").mkdir()
    (folder.results / "charts" / "live.json").write_text(json.dumps(CHART))
    (folder.results / "theory").mkdir()
    (folder.results / "theory" / "a.csv").write_text("gamma,bound\n1,<2>\n")
    for name in ("each/gauss-3/mlp", "each/gone/mlp", "early", "elsewhere", "gone", "data/gone"):
        path = folder.results / "figures" / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (300, 200), "white").save(path)
    claims = ",".join(CLAIM) + "\n" + ",".join(CLAIM.values()) + "\n"
    (folder.results / "tables" / "claims.csv").write_text(claims)
    return folder


def contents_of(made, **changes):
    config = made.config | changes
    return read_contents(made.results, config, build_grid(config, ROOT))


def test_report_of_a_small_folder(made):
    text = made.write_report().read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "gauss-3/mlp/ce/seed2" in text
    assert "loss is NaN in epoch 2 &lt;b&gt;" in text
    assert json.loads((made.results / "config.json").read_text()) == made.config


def test_products_stand_on_their_pages_in_order(made):
    contents = contents_of(made)
    names = {n: [block.product.name for block in blocks] for n, blocks in contents.blocks.items()}
    assert list(names) == list(SECTIONS)
    assert names["scores"] == ["early", "each", "live", "late"]
    assert names["theory"] == ["elsewhere"]
    assert not any(names[section] for section in SECTIONS if section not in {"scores", "theory"})
    text = report_html(contents)
    anchors = re.findall(r'<details class="block" id="((?:table|figure|chart)s/.*?)"( open)?>', text)
    assert anchors == [
        ("figures/early", ""),
        ("figures/each", ""),
        ("charts/live", " open"),
        ("tables/late", ""),
        ("figures/elsewhere", ""),
    ]
    assert "Caption of late." in text
    assert "unmade" not in text


def test_a_figure_with_nothing_to_draw_is_no_choice_and_alone_not_shown(tmp_path):
    drawn = {"a": style.message_figure("Nothing for a."), "b": Figure(figsize=(1, 1))}
    for name, one in drawn.items():
        style.write_figure(one, [tmp_path / f"{name}.png"])
    each = product("each", "figure", scope="dataset and model")

    def blocks_of(*names):
        layout = SimpleNamespace(reported=lambda: [each], stems=lambda _: {name: name for name in names})
        return report_contents._section_blocks(tmp_path, layout, 0.95)[each.section]

    (block,) = blocks_of("a", "b")
    assert list(block.parts) == ["b"]
    assert blocks_of("a") == []


def test_evidence_leads_to_where_it_is_shown(made):
    (claim,) = contents_of(made).claims
    files = EVIDENCE.split(", ")
    anchors = ["tables/late", "figures/each", "theory/a", None]
    assert claim["evidence"] == list(zip(files, anchors, strict=True))
    text = report_html(contents_of(made))
    assert '<a href="#tables/late">late.csv</a>' in text
    assert '<a href="#theory/a">a.csv</a>, other.csv</td>' in text
    assert '<details class="block" id="theory/a">' in text
    assert "<tr><td>1</td><td>&lt;2&gt;</td></tr>" in text


def test_a_chart_stands_in_the_report_with_its_table_and_what_draws_it(made):
    text = report_html(contents_of(made))
    specification = json.loads(re.search(r'<script type="application/json">(.*?)</script>', text)[1])
    assert specification["signals"][-1]["bind"]["options"] == ["</script>"]
    assert specification["marks"]
    assert 'data-table="table-late"' in text
    assert '<a href="#tables/late">the table of these numbers</a>' in text
    assert "window.vegaEmbed" in text
    assert text.count("<script") == text.count("</script>") == 3


def test_runs_and_claims_are_escaped(made):
    contents = contents_of(made)
    hostile = dict.fromkeys(
        ("dataset", "model", "loss", "status", "device", "message", "path"), "<img src=x>"
    )
    runs = [run | hostile for run in contents.runs]
    claims = [
        claim | dict.fromkeys(("source", "verdict", "id"), '"><img src=x>') for claim in contents.claims
    ]
    text = report_html(replace(contents, runs=runs, claims=claims))
    assert "<img src=x>" not in text
    assert "<td>&lt;img src=x&gt;</td>" in text


def test_accepted_changes_are_shown(made):
    assert 'id="table-accepted"' not in report_html(contents_of(made))
    change = {"before": "focalcal/a.py=1", "after": "focalcal/a.py=2"}
    entry = {
        "rule": "train",
        "records": ["x"],
        "changes": [change],
        "reason": "<renamed>",
        "by": "A",
        "date": "d",
    }
    file = made.results / "accepted.json"
    file.write_text(json.dumps([entry]))
    text = report_html(contents_of(made))
    file.unlink()
    row = text.partition('id="table-accepted"')[2].partition("</table>")[0]
    for cell in ("train", "focalcal/a.py", "&lt;renamed&gt;", "A", "d"):
        assert f"<td>{cell}</td>" in row


def test_the_first_page_begins_with_what_to_do_with_own_logits(made):
    found = made_recommendation({})["recommendation"] | {"absent_classes": [2]}
    picture = InlineImage("data:,x", 10, 10)
    said = advice_text("my-<model>", found, "results/recommended/d/m/ce/seed1.json", 0.95)
    advice = [{**said, "where": "d/m", "picture": picture}]
    text = report_html(replace(contents_of(made), advice=advice))
    page = text[text.index('<section class="page" id="calibrator"') :]
    own = page.index("What to do with my-&lt;model&gt;</h3>")
    others = page.index("No run has both TS and FTS.")
    card = page[own:others]
    assert card.index('src="data:,x"') < card.index("<dl>"), "the picture comes first"
    assert "Reliability of d/m before and after" in card
    assert "<strong>Use temperature scaling (TS).</strong> It has the lowest log-loss in 5-fold" in card
    assert "<dt>Caution</dt><dd>No validation samples of 1 of 3 classes (2)" in card
    assert "calibrator = load(&#39;results/recommended/d/m/ce/seed1.json&#39;)" in card


def test_a_report_on_own_logits_says_nothing_of_losses_that_are_not_compared(made):
    contents = contents_of(made)
    assert contents.several_losses
    one = [run for run in contents.runs if run["loss"] == "ce"]
    for own, runs, shown in ((True, one, False), (True, contents.runs, True), (False, one, True)):
        text = report_html(replace(contents, own_logits_only=own, runs=runs))
        assert ('<section class="page" id="loss"' in text) == shown


def test_the_page_about_papers_begins_with_a_bar_per_paper_and_what_fails(made):
    contents = contents_of(made)
    verdicts = ["not reproduced"] * 6 + ["reproduced"] * 2
    claims = [
        contents.claims[0]
        | {"statement": f"statement {n}", "verdict": v, "source": f"{'M20' if n > 6 else 'K24'} Sec. {n}"}
        for n, v in enumerate(verdicts)
    ]
    contents = replace(contents, claims=claims)
    assert {name: dict(counts) for name, counts in contents.papers.items()} == {
        "K24": {"not reproduced": 6, "reproduced": 1},
        "M20": {"reproduced": 1},
    }
    text = report_html(contents)
    top = text[text.index('id="papers"') : text.index("Every statement")]
    assert '<span class="not-reproduced" style="width:85.71%">' in top
    assert "</span> 1 reproduced, 6 not reproduced <small>Komisarenko &amp; Kull, ECAI 2024" in top
    assert "statement 3" in top
    assert "statement 4" not in top
    assert "and 2 more in the table below" in top


def test_the_map_stands_first_with_a_mark_where_the_reader_is(made):
    row = {"origin": "published networks", "best": "fts", "best_name": "FTS", "networks_count": 3}
    row |= {f"{key}_{name}": v for key in ("best_ts", "fts_ts") for name, v in CHANGE.items()}
    ts = row | {"best": "ts", "best_name": "TS", "fts_ts_relative": 0.004, "fts_ts_verdict": ""}
    frame = pd.DataFrame(
        [
            row | {"classes": "10", "samples": 100.0},
            ts | {"classes": "100", "samples": 1000.0, "best_ts_relative": float("nan")},
            row | {"classes": "10", "samples": 100.0, "origin": "trained here"},
        ]
    )
    made_map = map_card(frame, [Mark("<mine>", 100, 700), Mark("elsewhere", 7, 700), Mark("many", 10, 5000)])
    assert made_map["networks"] == "6 networks"
    assert made_map["off"] == "elsewhere (7 classes, 700 samples); many (10 classes, 5,000 samples)"
    assert made_map["sizes"] == ["100", "1,000"]
    (ten, hundred) = (row["cells"] for row in made_map["rows"])
    minus = "\N{MINUS SIGN}"
    assert (ten[0]["changes"], ten[1]) == ([f"{minus}1.2 %*"], None)
    assert (hundred[1]["changes"], hundred[1]["marks"]) == (["FTS +0.4 %"], ["<mine>"])
    text = report_html(replace(contents_of(made), map=made_map))
    assert '<span class="mark">★ &lt;mine&gt;</span>' in text
    assert text.index('id="map"') < text.index("No run has both TS and FTS.")
    assert map_card(pd.DataFrame()) is None


def test_warnings_about_imported_logits_stand_beside_their_run(made):
    path = made.results / "runs" / "gauss-3" / "mlp" / "ce" / "seed1" / "run.json"
    before = path.read_text("utf-8")
    path.write_text(json.dumps(json.loads(before) | {"warnings": ["5 are exactly 0"]}), encoding="utf-8")
    messages = {run["path"]: run["message"] for run in contents_of(made).runs}
    path.write_text(before, encoding="utf-8")
    assert messages["gauss-3/mlp/ce/seed1"] == "5 are exactly 0"
    assert messages["gauss-3/mlp/ce/seed2"].startswith("loss is NaN")


def test_costs_are_summed_by_rule(tmp_path):
    for name, seconds, memory in (("train/a", 10, 100), ("train/b", 5, "NA"), ("aggregate", 1, "NA")):
        path = tmp_path / f"{name}.tsv"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"s\tmax_rss\n{seconds}\t{memory}\n")
    train, aggregate = read_costs(tmp_path)
    assert (train.rule, train.jobs, train.seconds, train.longest, train.memory) == ("train", 2, 15, 10, 100)
    assert (aggregate.rule, aggregate.memory) == ("aggregate", None), "too short to measure"


@pytest.mark.parametrize("content", [b"\xff", b"s\n", b"s\tmax_rss\n1\n", b"s\tmax_rss\nlong\t1\n"])
def test_a_damaged_file_of_costs_is_named(tmp_path, content):
    (tmp_path / "train.tsv").write_bytes(content + b"s\tmax_rss\n")
    with pytest.raises(UserError, match=r"train\.tsv is damaged \(.*delete it"):
        read_costs(tmp_path)
