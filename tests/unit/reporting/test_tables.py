import csv
import io

import pandas as pd
import pytest

from focalcal.reporting.records import published
from focalcal.reporting.records.measurements import COLUMNS, Summary, check_metrics, load_metrics, summarise
from focalcal.reporting.tables import papers as tables
from focalcal.reporting.tables.cells import (
    Footnotes,
    Scale,
    index_published,
    loss_name,
    mark_best,
    number,
    printed_cell,
    score_cell,
    seeds_cell,
    spread_note,
)
from focalcal.reporting.tables.formats import Cell, to_csv, to_latex, to_markdown

G = "\N{GREEK SMALL LETTER GAMMA}"
MINUS = "\N{MINUS SIGN}"
PERCENT = Scale("ECE (%)", 100, 2)

# Two seeds of cross-entropy and of FLSD-53 on a cell K24 and M20 print, and one seed of a place neither has.
STORED = """dataset,model,loss,seed,method,criterion,gamma,temperature,split,metric,value
cifar10,resnet50,ce,0,none,,0,1,test,ece,0.04
cifar10,resnet50,ce,1,none,,0,1,test,ece,0.05
cifar10,resnet50,ce,0,none,,0,1,test,error,0.06
cifar10,resnet50,ce,1,none,,0,1,test,error,0.05
cifar10,resnet50,ce,0,ts,ece,0,2.4,test,ece,0.012
cifar10,resnet50,ce,1,ts,ece,0,2.6,test,ece,0.014
cifar10,resnet50,ce,0,ts,nll,0,1.5,test,nll,0.15
cifar10,resnet50,ce,1,ts,nll,0,1.7,test,nll,0.19
cifar10,resnet50,ce,0,ts,adaece,0,1.6,test,adaece,0.011
cifar10,resnet50,ce,1,ts,adaece,0,1.8,test,adaece,0.013
cifar10,resnet50,ce,0,ts,adaece,0,1.6,test,accuracy,0.94
cifar10,resnet50,ce,1,ts,adaece,0,1.8,test,accuracy,0.95
cifar10,resnet50,ce,0,ts,adaece,0,1.6,val,adaece,0.001
cifar10,resnet50,ce,0,fts,nll,0.05,1.5,test,nll,0.16
cifar10,resnet50,ce,1,fts,nll,0.05,1.7,test,nll,0.18
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


@pytest.fixture(scope="module")
def papers():
    return index_published(published.unique_cells(published.load_results()))


def stored(text, tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text(text)
    return summarise(load_metrics(path))


def texts(table, *, hidden=False):
    keep = [hidden or not column.hidden for column in table.columns]
    return [[cell.text for cell, kept in zip(row, keep, strict=True) if kept] for row in table.rows]


class TestK24:
    def test_golden_rows(self, papers, tmp_path):
        table = tables.k24_table(stored(STORED, tmp_path), papers)
        assert texts(table) == [
            [
                *("cifar10", "resnet50", "Cross-entropy", "2"),
                *("94.5 ± 0.7", "95.0 ± 0.1", f"{MINUS}0.5"),
                *("0.170 ± 0.028 (T 1.60)", "0.16 ± 0.00 (T 1.59)", "+0.01"),
                *("1.20 ± 0.14 (T 1.70)", "1.03 ± 0.17 (T 1.72)", "+0.17"),
            ],
            [
                *("cifar10", "resnet50", f"+ {G}", "2"),
                *("94.5 ± 0.7", "95.0 ± 0.1", f"{MINUS}0.5"),
                *(f"0.170 ± 0.014 ({G} 0.05, T 1.60)", f"0.17 ± 0.01 ({G} 1, T 2.20)", "0.00"),
                *(f"0.75 ± 0.07 ({G} {MINUS}0.25 to 1, T 1.80)", f"0.71 ± 0.16 ({G} 1, T 2.36)", "+0.04"),
            ],
            [
                *("cifar10", "resnet50", "FLSD-53", "2"),
                *("", "94.6 ± 0.1", ""),
                *("", "0.18 ± 0.01 (T 1.40)", ""),
                *("2.00 ± 0.00 (T 1.10)", "1.30 ± 0.13 (T 1.40)", "+0.70"),
            ],
            [
                *("cifar10", "resnet50", f"+ {G}", "2"),
                *("", "94.6 ± 0.1", ""),
                *("", f"0.17 ± 0.01 ({G} 1, T 1.30) †1", ""),
                *(f"1.80 ± 0.00 ({G} 1, T 1.50)", f"1.23 ± 0.20 ({G} 1, T 1.33) †1", "+0.57"),
            ],
        ]

    def test_best_is_bold_with_ties_at_the_shown_digits(self, papers, tmp_path):
        table = tables.k24_table(stored(STORED, tmp_path), papers)
        best = [
            (row[4].text, column.key)
            for row in table.rows
            for column, cell in zip(table.columns, row, strict=True)
            if cell.best
        ]
        assert best == [
            ("Cross-entropy", "accuracy"),
            ("Cross-entropy", "nll"),
            (f"+ {G}", "accuracy"),
            (f"+ {G}", "nll"),
            (f"+ {G}", "adaece"),
        ]
        assert f"**0.75 ± 0.07 ({G} {MINUS}0.25 to 1, T 1.80)**" in to_markdown(table)

    def test_notes_say_what_stands_there(self, papers, tmp_path):
        table = tables.k24_table(stored(STORED, tmp_path), papers)
        assert "Mean ± sample standard deviation (n - 1) over n seeds." in table.notes
        assert any(note.startswith("†1 As printed; temperature falls") for note in table.notes)
        assert table.notes[-1].startswith("K24: 5 seeds")

    def test_single_seeds_show_no_spread_and_unpublished_places_no_columns(self, papers, tmp_path):
        header = STORED.splitlines()[0]
        table = tables.k24_table(stored(f"{header}\n{SINGLE}", tmp_path), papers)
        assert [column.key for column in table.columns if not column.hidden] == [
            *("dataset", "model", "approach", "seeds", "accuracy", "nll", "adaece")
        ]
        assert texts(table) == [
            ["gauss-3", "mlp", f"Focal {G} = 2", "1", "", "", "3.01 (T 0.70)"],
            ["gauss-3", "mlp", f"+ {G}", "1", "", "", f"3.00 ({G} 0.5, T 0.90)"],
        ]
        assert "One seed a setting (n = 1): no standard deviation can be given." in table.notes
        assert not any("K24" in note for note in table.notes)

    def test_places_are_groups_ranked_apart(self, papers, tmp_path):
        table = tables.k24_table(stored(STORED + SINGLE, tmp_path), papers)
        assert [len(group) for group in table.groups] == [4, 2]
        assert sum(row[-3].best for row in table.rows) == 2
        assert to_latex(table).count(r"\midrule") == 2

    def test_csv_holds_the_numbers(self, papers, tmp_path):
        rows = list(csv.DictReader(io.StringIO(to_csv(tables.k24_table(stored(STORED, tmp_path), papers)))))
        fts = rows[1]
        assert (fts["loss"], fts["method"], fts["adaece_seeds"], fts["adaece_best"]) == (
            "ce",
            "fts",
            "2",
            "1",
        )
        assert float(fts["adaece_mean"]) == pytest.approx(0.0075)
        assert (fts["adaece_gamma_low"], fts["adaece_gamma_high"]) == ("-0.25", "1.0")
        assert (fts["adaece_published_mean"], fts["adaece_published_std"]) == ("0.0071", "0.0016")
        assert float(fts["adaece_difference_mean"]) == pytest.approx(0.0004)
        assert rows[2]["nll_mean"] == ""

    def test_equal_width_error_has_no_published_cell(self, papers, tmp_path):
        table = tables.k24_table(stored(STORED, tmp_path), papers, calibration_error="ece")
        assert texts(table)[0][-1] == "1.30 ± 0.14 (T 2.50)"
        assert "ece_published" not in [column.key for column in table.columns]

    def test_no_runs_no_table(self, papers):
        assert tables.k24_table({}, papers) is None

    def test_is_deterministic_whatever_the_order_of_rows(self, papers, tmp_path):
        frame = load_metrics(_write(tmp_path, STORED + SINGLE))
        shuffled = frame.sample(frac=1, random_state=3)
        one, two = (tables.k24_table(summarise(f), papers) for f in (frame, shuffled))
        assert (to_csv(one), to_markdown(one), to_latex(one)) == (
            to_csv(two),
            to_markdown(two),
            to_latex(two),
        )

    def test_the_published_table_against_itself(self, papers):
        """Feeding K24's own numbers back gives differences of zero in all 108 cells."""
        rows = [
            (
                c.dataset,
                c.model,
                c.loss,
                "0",
                c.method,
                c.criterion or "adaece",
                c.gamma,
                c.temperature,
                "test",
                c.metric,
                c.value,
            )
            for c in published.load_results().query("paper == 'K24'").itertuples()
        ]
        table = tables.k24_table(summarise(check_metrics(pd.DataFrame(rows, columns=list(COLUMNS)))), papers)
        assert len(table.rows) == 36
        differences = [row[index] for row in table.rows for index in (8, 11, 14)]
        assert {float(cell.text) for cell in differences} == {0.0}
        assert len(differences) == 108


def _write(tmp_path, text):
    path = tmp_path / "metrics.csv"
    path.write_text(text)
    return path


class TestM20:
    def test_golden_rows(self, papers, tmp_path):
        table = tables.m20_table(stored(STORED, tmp_path), papers, "ece")
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
        assert [cell.best for cell in table.rows[0][4:]] == [False, True, True, False]
        assert not any(cell.best for row in table.rows[1:] for cell in row)

    def test_csv_tells_sources_apart(self, papers, tmp_path):
        rows = list(
            csv.DictReader(io.StringIO(to_csv(tables.m20_table(stored(STORED, tmp_path), papers, "ece"))))
        )
        assert [row["source"] for row in rows] == ["ours", "M20", "difference"]
        assert (rows[1]["ce_post_mean"], rows[1]["ce_post_temperature"]) == ("0.0135", "2.5")
        assert float(rows[2]["ce_post_mean"]) == pytest.approx(-0.0005)

    def test_error_has_one_column_a_loss(self, papers, tmp_path):
        table = tables.m20_table(stored(STORED, tmp_path), papers, "error", losses=["ce"])
        assert texts(table) == [
            ["cifar10", "resnet50", "ours", "2", "5.50 ± 0.71"],
            ["cifar10", "resnet50", "M20", "", "4.95"],
            ["cifar10", "resnet50", "difference", "", "+0.55"],
        ]

    def test_one_stage_and_no_published_place(self, papers, tmp_path):
        table = tables.m20_table(
            stored(f"{STORED.splitlines()[0]}\n{SINGLE}", tmp_path), papers, "ece", stages=("pre",)
        )
        assert texts(table) == [["gauss-3", "mlp", "ours", "1", "20.00"]]
        assert not any("M20" in note for note in table.notes)

    def test_tables_exist_only_for_scores_at_hand(self, papers, tmp_path):
        found = tables.m20_tables(stored(STORED, tmp_path), papers)
        assert [table.name for table in found] == ["m20_ece", "m20_adaece", "m20_error"]
        assert tables.m20_table({}, papers, "ece") is None

    @pytest.mark.parametrize("metric", ["ece", "adaece", "error", "nll", "mce"])
    def test_the_published_tables_against_themselves(self, papers, metric):
        cells = published.unique_cells(published.load_results()).query("paper == 'M20' and metric == @metric")
        rows = [
            (
                c.dataset,
                c.model,
                c.loss,
                "0",
                c.method,
                c.criterion,
                c.gamma,
                c.temperature,
                "test",
                c.metric,
                c.value,
            )
            for c in cells.itertuples()
        ]
        table = tables.m20_table(summarise(pd.DataFrame(rows, columns=list(COLUMNS))), papers, metric)
        differences = [cell.text for row in table.rows for cell in row[4:] if row[2].text == "difference"]
        assert len(table.groups) == 10
        assert {float(text) for text in differences if text} == {0.0}
        assert sum(bool(text) for text in differences) == len(cells)


class TestC21:
    HEADER = STORED.splitlines()[0]

    def rows(self, dataset, model, loss, raw, recovered, methods=("none,", "psi,")):
        return "".join(
            f"{dataset},{model},{loss},0,{method},1,1,test,ece,{value}\n"
            for method, value in zip(methods, (raw, recovered), strict=True)
        )

    def table(self, tmp_path, *blocks):
        summary = stored(f"{self.HEADER}\n{''.join(blocks)}", tmp_path)
        return tables.c21_table(summary, published.load_c21_statements())

    def test_golden_row(self, tmp_path):
        table = self.table(tmp_path, SINGLE)
        assert texts(table) == [
            [
                "gauss-3",
                "mlp",
                f"Focal {G} = 2",
                "Standard",
                "2",
                "1",
                "",
                "20.00",
                "5.00",
                f"{MINUS}15.00",
                "",
                "",
            ]
        ]
        assert [cell.best for cell in table.rows[0][7:9]] == [False, True]

    def test_what_c21_says_is_compared(self, tmp_path):
        smoothed, scaled = "focal-1+ls-0.1", ("ts-focal,focal", "ts-focal-psi,focal")
        table = self.table(
            tmp_path,
            self.rows("svhn", "resnet110", "focal-1", 0.2, 0.1),
            self.rows("svhn", "resnet110", "focal-3", 0.1, 0.2),
            self.rows("svhn", "resnet110", "focal-5", 0.1, 0.2),
            self.rows("cifar10", "resnet110", "focal-2", 0.1, 0.2),
            self.rows("cifar10", "resnet110", "focal-2", 0.3, 0.1, scaled),
            self.rows("cifar10", "resnet110", smoothed, 0.3, 0.1),
            self.rows("cifar10", "resnet110", "ce", 0.3, 0.3),
        )
        said = [(row[0], row[2], row[3], row[10], row[11]) for row in texts(table)]
        assert said == [
            ("cifar10", "Cross-entropy", "Standard", "", ""),
            ("cifar10", f"Focal {G} = 1, smoothing 0.1", "LS", "Ψ improves", "the same"),
            ("cifar10", f"Focal {G} = 2", "Standard", "Ψ worsens", "the same"),
            ("cifar10", f"Focal {G} = 2", "TS_FL", "Ψ improves", "the same"),
            ("svhn", f"Focal {G} = 1", "Standard", "Ψ improves", "the same"),
            ("svhn", f"Focal {G} = 3", "Standard", "Ψ improves", "not so"),
            ("svhn", f"Focal {G} = 5", "Standard", "", ""),
        ]

    def test_losses_without_a_known_gamma_are_left_out(self, tmp_path):
        assert self.table(tmp_path, self.rows("svhn", "resnet110", "flsd-53", 0.2, 0.1)) is None
        assert self.table(tmp_path, self.rows("svhn", "resnet110", "someone's", 0.2, 0.1)) is None


class TestCells:
    def test_numbers(self):
        assert number(-0.004, 2) == "0.00"
        assert number(-0.006, 2) == f"{MINUS}0.01"
        assert number(0.006, 2, signed=True) == "+0.01"
        assert number(0.0, 1, signed=True) == "0.0"
        assert number(99999.4, 0) == "99999"
        assert number(1e296, 3) == "1.00e296"
        assert number(-123456.0, 2, signed=True) == f"{MINUS}1.23e5"

    @pytest.mark.parametrize(
        ("loss", "name"),
        [
            ("ce", "Cross-entropy"),
            ("focal-0.5", f"Focal {G} = 0.5"),
            ("dual-focal-2", f"Dual focal {G} = 2"),
            ("ls-0.05", "Label smoothing 0.05"),
            ("mmce-authors", "mmce-authors"),
            ("theirs", "theirs"),
        ],
    )
    def test_loss_names(self, loss, name):
        assert loss_name(loss) == name

    def test_score_without_fit_or_gamma(self):
        assert score_cell(None, PERCENT) == Cell()
        plain = Summary(3, 0.0123, 0.001, None, None)
        assert score_cell(plain, PERCENT, "gamma T").text == "1.23 ± 0.10"

    def test_seed_counts_that_differ_show_as_a_range(self):
        counts = [Summary(n, 0.1, None, None, None) for n in (5, 3, 5)]
        assert seeds_cell([*counts, None]).text == "3\N{EN DASH}5"

    def test_spread_notes(self):
        one, many = Summary(1, 0.1, None, None, None), Summary(4, 0.1, 0.1, None, None)
        assert spread_note([one, one]).startswith("One seed")
        assert spread_note([many]).endswith("over n seeds.")
        assert spread_note([one, many]).endswith("none is given for a setting with one seed.")

    def test_footnotes_are_numbered_once(self, papers):
        footnotes = Footnotes()
        assert [footnotes.mark(text) for text in ("a", "", "b", "a")] == [" †1", "", " †2", " †1"]
        assert footnotes.notes() == ["†1 As printed; a.", "†2 As printed; b."]
        cell = papers["M20", "cifar10", "resnet50", "mmce", "ts", "ece", "s99_accuracy"]
        assert printed_cell(cell, "T", Footnotes()).text == "100"
        cell = papers["M20", "cifar10", "resnet110-bottleneck", "ce", "ts", "ece", "s99_accuracy"]
        assert printed_cell(cell, "T", Footnotes()).text == "97.39 †1"

    def test_best_can_be_the_highest(self):
        cells = [Cell("", (0.5,)), Cell(), Cell("", (0.70001,)), Cell("", (0.7,))]
        highest = mark_best(cells, Scale("", 100, 1, higher_is_better=True))
        assert [cell.best for cell in highest] == [False, False, True, True]
        assert mark_best([Cell()], PERCENT) == [Cell()]
