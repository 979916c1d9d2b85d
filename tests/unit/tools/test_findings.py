"""Pages that are filled from the tables of studies, and refuse to say what those do not."""

import gzip

import pandas as pd
import pytest

from tools import findings
from tools.figures import changes_figure, printed_figure, why_figure
from tools.findings import ContradictedError, Study, finding_pages, judged_claims


def make_study(folder, name, tables, **facts):
    for table, text in tables.items():
        path = folder / name / "tables" / f"{table}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Study(folder / name, facts)


@pytest.fixture
def study(tmp_path):
    table = "family,difference,verdict\nBrier,-0.25,lower\nCE,,open\n"
    return make_study(tmp_path, "one", {"effects": table}, title="One")


def test_rows_are_those_with_the_values_asked_for(study):
    assert study.rows("effects", family="Brier") == [
        {"family": "Brier", "difference": -0.25, "verdict": "lower"}
    ]
    assert study.row("effects", family="CE")["difference"] is None
    assert study.has("effects")
    assert not study.has("others")


def test_a_claim_is_judged_by_each_study_that_could(tmp_path):
    head = "id,source,statement,published,measured,setting,verdict\n"
    first = make_study(
        tmp_path, "a", {"claims": f"{head}x,K24,s,1,2,here,reproduced\ny,K24,t,1,,here,not run\n"}
    )
    second = make_study(tmp_path, "b", {"claims": f"{head}x,K24,s,1,3,here,not reproduced\n"})
    (claim,) = judged_claims({"a": first, "b": second})
    assert claim.verdicts == {"a": "reproduced", "b": "not reproduced"}
    assert (claim.verdict, claim.measured) == ("differs", 2)
    (alone,) = judged_claims({"b": second})
    assert alone.verdict == "not reproduced"


METRICS_HEAD = "dataset,model,loss,seed,method,criterion,gamma,temperature,split,metric,value\n"


def metrics_rows(losses):
    """Return metrics.csv of one network per loss, given its log-losses by method."""
    return METRICS_HEAD + "".join(
        f"d,m,{loss},{seed},{method},nll,0,1,test,nll,{value}\n"
        for loss, by_method in losses.items()
        for method, values in by_method.items()
        for seed, value in enumerate(values)
    )


def test_two_calibrators_are_compared_over_settings(tmp_path):
    losses = {"ce": {"fts": [0.3, 0.5], "ts": [0.2, 0.2]}, "brier": {"fts": [0.1], "ts": [0.2]}}
    study = make_study(tmp_path, "a", {"metrics": metrics_rows(losses)})
    gap = study.gap(("fts", "ts"), "nll", "d")
    assert gap.mean == pytest.approx((0.2 - 0.1) / 2)
    assert (gap.lower, gap.count) == (1, 2)
    assert gap.interval.low < gap.mean < gap.interval.high
    alone = study.gap(("fts", "ts"), "nll", "d", ["brier"])
    assert (alone.mean, alone.interval) == (pytest.approx(-0.1), None)


def test_focal_losses_are_set_against_the_temperature_of_cross_entropy(tmp_path):
    overview = "dataset,model,loss,nll_ts_temperature\nd,m,ce,2.5\nd,m,focal-1,1.5\ne,m,ce,0.5\n"
    heads = ",".join(f"{loss}_pre_mean" for loss in ("ce", "focal-1", "focal-2", "focal-3"))
    ece = (
        f"dataset,model,source,{heads}\nd,m,ours,.2,.1,.05,.25\nd,m,published,1,1,1,1\ne,m,ours,.1,.2,.3,.5\n"
    )
    study = make_study(tmp_path, "a", {"overview": overview, "m20_ece": ece})
    changes = pd.DataFrame(study.focal_changes())
    table = changes.pivot_table("change", ["dataset", "temperature"], "loss")
    assert table.loc[("d", 2.5)].tolist() == pytest.approx([-0.1, -0.15, 0.05])
    assert table.loc[("e", 0.5)].tolist() == pytest.approx([0.1, 0.2, 0.4])
    drawn = changes_figure(
        {"One": changes[changes["dataset"] == "d"], "Two": changes[changes["dataset"] == "e"]}
    )
    points = [
        {line.get_label(): (*line.get_xdata(), *line.get_ydata()) for line in axis.lines[1:]}
        for axis in drawn.axes
    ]
    assert points[0] == {"One": (2.5, pytest.approx(-10)), "Two": (0.5, pytest.approx(10))}
    assert points[2] == {"One": (2.5, pytest.approx(5)), "Two": (0.5, pytest.approx(40))}


def test_printed_cells_stand_beside_ours(tmp_path):
    ece = (
        "dataset,model,source,ce_pre_mean,ce_post_mean,ce_post_temperature,mmce_pre_mean,mmce_post_mean,"
        "mmce_post_temperature\n"
        "cifar10,m,ours,.1,.02,2.5,.3,.3,1\ncifar10,m,printed,.2,,2.4,.1,.1,1\ncifar100,m,ours,.1,.1,1,,,\n"
    )
    error = (
        "dataset,model,source,ce_pre_mean,mmce_pre_mean\ncifar10,m,ours,.05,.2\ncifar10,m,printed,.04,.1\n"
    )
    study = make_study(tmp_path, "a", {"m20_ece": ece, "m20_error": error})
    (title, cells), *others = study.beside_printed().items()
    assert (title, others) == ("CIFAR-10", [])
    pairs = {row.quantity: (row.printed, row.ours) for row in cells.itertuples()}
    assert pairs == {"test error (%)": (4, 5), "ECE as trained (%)": (20, 10), "T": (2.4, 2.5)}
    drawn = printed_figure({title: cells})
    points = [
        (axis.get_title(), *axis.lines[1].get_xdata(), *axis.lines[1].get_ydata()) for axis in drawn.axes
    ]
    assert points == [(quantity, *pair) for quantity, pair in pairs.items()]


def test_changes_of_log_loss_are_against_the_run_as_trained(tmp_path):
    study = make_study(tmp_path, "a", {})
    rows = (
        "d,m,ce,1,none,0.5\nd,m,ce,1,ts,0.25\nd,m,ce,1,fts,2\n"
        "d,n,ce,1,none,1\nd,n,ce,1,ts,0.5\nd,n,ce,1,fts,0.5\n"
    )
    study.folder.mkdir()
    with gzip.open(study.folder / "log_loss.csv.gz", "wt") as target:
        target.write(f"dataset,model,loss,seed,method,nll\n{rows}")
    assert [row["change"] for row in study.log_loss_changes] == [0, -0.25, 1.5, 0, -0.5, -0.5]
    assert study.lower_and_higher("fts", "ts") == (0, 1)


def test_a_page_is_filled_and_refuses_what_does_not_hold(tmp_path, monkeypatch):
    pages = tmp_path / "pages"
    pages.mkdir()
    monkeypatch.setattr(findings, "PAGES", pages)
    head = "id,source,statement,published,measured,setting,verdict\n"
    make_study(tmp_path, "one", {"effects": "family,gain\nBrier,-0.25\n", "claims": head})
    (tmp_path / "studies.yaml").write_text("one: {title: One}\n")
    line = "{% set row = studies.one.row('effects') %}{{ states(row.gain < 0) }}{{ row.gain | signed(2) }}\n"
    (pages / "page.md").write_text(line)
    assert finding_pages(tmp_path) == {"page.md": "\N{MINUS SIGN}0.25\n"}
    (pages / "page.md").write_text(line.replace("<", ">"))
    with pytest.raises(ContradictedError, match=r"page\.md, line 1: the studies contradict"):
        finding_pages(tmp_path)


def test_why_shows_signs_and_what_is_left_at_the_most_samples():
    methods = dict.fromkeys(("none", "ts", "fts", "two-ts", "ets", "svs"), 0.01)
    rows = [
        {"distortion": "focal", "samples": samples, "ratio": 2.0, "gamma": 3.0, **methods, "fts": fts}
        for samples, fts in ((100, 0.002), (500, 0.001))
    ]
    left, right = why_figure(pd.DataFrame([*rows, rows[1] | {"distortion": "nothing", "gamma": 0.0}])).axes
    assert [tuple(line.get_xydata()[0]) for line in left.lines[:2]] == [(2, 4), (2, 1)]
    names = ["focal loss, \N{GREEK SMALL LETTER GAMMA} = 3", "all others"]
    assert [text.get_text() for text in left.texts] == names
    assert [label.get_text() for label in right.get_yticklabels()][1] == "nothing wrong"
    assert list(right.lines[2].get_xdata()) == [0.001, 0.001]
