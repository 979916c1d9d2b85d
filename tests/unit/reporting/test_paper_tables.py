"""Tables in the layouts of K24 and M20."""

import pandas as pd
import pytest

from focalcal.reporting.records import published
from focalcal.reporting.records.measurements import COLUMNS, check_metrics
from tests.unit.reporting.made_sources import bold, build, metrics_of, texts

G = "\N{GREEK SMALL LETTER GAMMA}"
MINUS = "\N{MINUS SIGN}"

# Two seeds of cross-entropy and of FLSD-53 on a cell that K24 and M20 print, and one seed of a dataset and
# model that neither has.
STORED = """cifar10,resnet50,ce,0,none,,0,1,test,ece,0.04
cifar10,resnet50,ce,1,none,,0,1,test,ece,0.05
cifar10,resnet50,ce,0,none,,0,1,test,error,0.06
cifar10,resnet50,ce,1,none,,0,1,test,error,0.05
cifar10,resnet50,ce,0,ts-m20,ece,0,2.4,test,ece,0.012
cifar10,resnet50,ce,1,ts-m20,ece,0,2.6,test,ece,0.014
cifar10,resnet50,ce,0,ts-m20,adaece,0,2.5,test,adaece_authors,0.02
cifar10,resnet50,ce,0,ts,nll,0,1.5,test,nll,0.15
cifar10,resnet50,ce,1,ts,nll,0,1.7,test,nll,0.19
cifar10,resnet50,ce,0,ts,adaece,0,1.6,test,adaece,0.011
cifar10,resnet50,ce,1,ts,adaece,0,1.8,test,adaece,0.013
cifar10,resnet50,ce,0,ts,adaece,0,1.6,test,accuracy,0.94
cifar10,resnet50,ce,1,ts,adaece,0,1.8,test,accuracy,0.95
cifar10,resnet50,ce,0,ts,adaece,0,1.6,val,adaece,0.001
cifar10,resnet50,ce,0,fts-k24,nll,0.05,1.5,test,nll,0.16
cifar10,resnet50,ce,1,fts-k24,nll,0.05,1.7,test,nll,0.18
cifar10,resnet50,ce,0,fts,adaece,-0.25,1.4,test,adaece,0.007
cifar10,resnet50,ce,1,fts,adaece,1,2.2,test,adaece,0.008
cifar10,resnet50,ce,0,fts,adaece,-0.25,1.4,test,accuracy,0.94
cifar10,resnet50,ce,1,fts,adaece,1,2.2,test,accuracy,0.95
cifar10,resnet50,flsd-53,0,none,,0,1,test,ece,0.0155
cifar10,resnet50,flsd-53,1,none,,0,1,test,ece,0.0165
cifar10,resnet50,flsd-53,0,ts,adaece,0,1.1,test,adaece,0.02
cifar10,resnet50,flsd-53,1,ts,adaece,0,1.1,test,adaece,0.02
cifar10,resnet50,flsd-53,0,fts,adaece,1,1.5,test,adaece,0.018
cifar10,resnet50,flsd-53,1,fts,adaece,1,1.5,test,adaece,0.018
"""
SINGLE = """gauss-3,mlp,focal-2,0,none,,0,1,test,ece,0.2
gauss-3,mlp,focal-2,0,psi,,2,1,test,ece,0.05
gauss-3,mlp,focal-2,0,ts,adaece,0,0.7,test,adaece,0.0301
gauss-3,mlp,focal-2,0,fts,adaece,0.5,0.9,test,adaece,0.03005
"""
FTS_OURS = f"0.170 ± 0.014 ({G} 0.05, T 1.60)", f"0.75 ± 0.07 ({G} {MINUS}0.25 to 1, T 1.80)"
FTS_PRINTED = f"0.17 ± 0.01 ({G} 1, T 2.20)", f"0.71 ± 0.16 ({G} 1, T 2.36)"
FLSD_PRINTED = f"0.17 ± 0.01 ({G} 1, T 1.30) †2", f"1.23 ± 0.20 ({G} 1, T 1.33) †2"


@pytest.fixture
def stored(tmp_path):
    return metrics_of(tmp_path, STORED)


@pytest.fixture
def single(tmp_path):
    return metrics_of(tmp_path, SINGLE)


def as_metrics(cells, criterion=""):
    """Return published cells as metrics of one seed."""
    rows = [
        (
            *(c.dataset, c.model, c.loss, "0", c.method, c.criterion or criterion, c.gamma, c.temperature),
            *("test", c.metric, c.value),
        )
        for c in cells.itertuples()
    ]
    return check_metrics(pd.DataFrame(rows, columns=list(COLUMNS)))


class TestK24:
    def test_golden_rows(self, stored):
        assert texts(build("k24_table1", metrics=stored)) == [
            ["cifar10", "resnet50", *names, *scores]
            for *names, scores in (
                (
                    "Cross-entropy",
                    "ours",
                    "2",
                    ("94.5 ± 0.7", "0.170 ± 0.028 (T 1.60)", "1.20 ± 0.14 (T 1.70)"),
                ),
                ("Cross-entropy", "K24", "", ("95.0 ± 0.1", "0.16 ± 0.00 (T 1.59)", "1.03 ± 0.17 (T 1.72)")),
                ("Cross-entropy", "difference", "", (f"{MINUS}0.5", "+0.01", "+0.17")),
                (f"+ {G}", "ours", "2", ("94.5 ± 0.7", *FTS_OURS)),
                (f"+ {G}", "K24", "", ("95.0 ± 0.1", *FTS_PRINTED)),
                (f"+ {G}", "difference", "", (f"{MINUS}0.5", "0.00", "+0.04")),
                ("FLSD-53", "ours", "2", ("", "", "2.00 ± 0.00 (T 1.10)")),
                ("FLSD-53", "K24", "", ("94.6 ± 0.1", "0.18 ± 0.01 (T 1.40) †1", "1.30 ± 0.13 (T 1.40) †1")),
                ("FLSD-53", "difference", "", ("", "", "+0.70")),
                (f"+ {G}", "ours", "2", ("", "", f"1.80 ± 0.00 ({G} 1, T 1.50)")),
                (f"+ {G}", "K24", "", ("94.6 ± 0.1", *FLSD_PRINTED)),
                (f"+ {G}", "difference", "", ("", "", "+0.57")),
            )
        ]

    def test_single_seeds_show_no_spread_and_unpublished_models_no_other_rows(self, single):
        table = build("k24_table1", metrics=single)
        assert texts(table) == [
            ["gauss-3", "mlp", f"Focal {G} = 2", "ours", "1", "", "", "3.01 (T 0.70)"],
            ["gauss-3", "mlp", f"+ {G}", "ours", "1", "", "", f"3.00 ({G} 0.5, T 0.90)"],
        ]
        assert "One seed per setting (n = 1): no standard deviation can be given." in table.notes
        assert not any("K24" in note for note in table.notes)

    def test_the_published_table_against_itself(self):
        """Feeding K24's own numbers back gives differences of zero in all 108 cells."""
        cells = published.as_measured(published.load_results()).query("paper == 'K24'")
        rows = texts(build("k24_table1", metrics=as_metrics(cells, "adaece")))
        differences = [text for row in rows if row[3] == "difference" for text in row[5:]]
        assert {float(text) for text in differences} == {0.0}
        assert len(differences) == 108


class TestM20:
    def test_golden_rows(self, stored):
        table = build("m20_ece", metrics=stored)
        assert [(column.span, column.header) for column in table.columns[4:]] == [
            ("Cross-entropy", "Pre T"),
            ("Cross-entropy", "Post T"),
            ("FLSD-53", "Pre T"),
            ("FLSD-53", "Post T"),
        ]
        assert texts(table) == [
            ["cifar10", "resnet50", "ours", "2", "4.50 ± 0.71", "1.30 ± 0.14 (T 2.50)", "1.60 ± 0.07", ""],
            ["cifar10", "resnet50", "M20", "", "4.35", "1.35 (T 2.50)", "1.55", "0.95 (T 1.10)"],
            ["cifar10", "resnet50", "difference", "", "+0.15", f"{MINUS}0.05", "+0.05", ""],
        ]
        assert bold(table) == [[False] * 4 + [False, True, True, False], [False] * 8, [False] * 8]

    def test_both_definitions_of_mmce_stand_above_the_printed_numbers(self, tmp_path):
        rows = "".join(
            f"cifar10,resnet50,{loss},1,ts-m20,ece,0,2.6,test,ece,{ece}\n"
            for loss, ece in (("mmce", 0.02), ("mmce-authors", 0.013))
        )
        table = build("m20_ece", metrics=metrics_of(tmp_path, rows))
        assert [column.span for column in table.columns[4::2]] == ["MMCE", "MMCE, released code"]
        assert [row[4:] for row in texts(table)] == [
            ["", "2.00 (T 2.60)", "", "1.30 (T 2.60)"],
            ["4.56", "1.19 (T 2.60)", "4.56", "1.19 (T 2.60)"],
            ["", "+0.81", "", "+0.11"],
        ]
        assert any(note.startswith("M20 prints one MMCE") for note in table.notes)

    @pytest.mark.parametrize("metric", ["ece", "adaece", "error", "nll", "mce"])
    def test_the_published_tables_against_themselves(self, metric):
        cells = published.unique_cells(published.load_results()).query("paper == 'M20' and metric == @metric")
        table = build(f"m20_{metric}", metrics=as_metrics(published.as_measured(cells)))
        differences = [text for row in texts(table) for text in row[4:] if row[2] == "difference"]
        assert len(table.groups()) == 10
        assert {float(text) for text in differences if text} == {0.0}
        assert sum(bool(text) for text in differences) == len(cells)


def test_calarenas_results_stand_beside_ours_on_the_networks_of_both(tmp_path):
    rows = "".join(
        f"cifar10,{model},ce,1,{method},{criterion},0,1,test,{metric},{value}\n"
        for model, method, criterion, value in (
            ("resnet110", "fms", "nll", 0.2),
            ("resnet110", "sms", "nll", 0.25),
            ("resnet110", "ts", "ece", 0.1),  # not fitted by log-loss
            ("resnet20", "fms", "nll", 0.1),  # not theirs
        )
        for metric in ("nll", "brier")
    )
    frame = build("calarena", metrics=metrics_of(tmp_path, rows)).frame
    assert set(frame["model"]) == {"resnet110"}
    assert frame["method"].tolist()[:3] == ["fms", "sms", "svs"]
    assert frame["rank"].tolist()[:3] == [1, 2, 3]
    first, second, *_ = frame.to_dict("records")
    assert (first["nll"], pd.isna(first["nll_calarena"])) == (0.2, True)
    assert second["nll_calarena"] == pytest.approx(0.2031188, abs=1e-7)
    assert second["difference"] == pytest.approx(0.25 - 0.2031188, abs=1e-7)
    assert len(frame) == 1 + 12
    assert build("calarena", metrics=metrics_of(tmp_path, SINGLE)) is None
