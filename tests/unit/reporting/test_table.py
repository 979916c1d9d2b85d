"""The writers of tables."""

import csv
import io

import pandas as pd
import pytest

from focalcal.reporting.tables.table import (
    Column,
    Table,
    empty_table,
    escape_latex,
    to_csv,
    to_html,
    to_latex,
    to_markdown,
)


@pytest.fixture
def table():
    rows = [
        ("cifar_10", "a", 0.01, 0.002, 1, "1.00 ± 0.20", None, "", "50 % & more", 1),
        ("cifar_10", "b", 0.015, None, 0, "1.5", 0.02, "2", "a|b", 1),
        ("cifar_10", "c", None, 3.0, None, "", None, "", "", 2),
    ]
    names = (
        "dataset",
        "id",
        "ece_mean",
        "ece_std",
        "ece_best",
        "_ece",
        "k24_mean",
        "_k24",
        "remark",
        "_group",
    )
    columns = (
        Column("Dataset", "dataset", merge=True),
        Column("ours", "_ece", "ece_mean", "ece_best", span="ECE (%)"),
        Column("K24", "_k24", "k24_mean", span="ECE (%)"),
        Column("Remark", lambda row: row["remark"]),
    )
    frame = pd.DataFrame(rows, columns=names).astype({"ece_best": "Int64"})
    return Table("A *demo*", frame, columns, ("_group",), ("one note",))


def plain(rows, columns, **more):
    """Return a table of texts, its columns merged where their names are capital letters."""
    shown = tuple(Column(name, name, merge=name.isupper()) for name in columns)
    return Table("T", pd.DataFrame(map(list, rows), columns=list(columns)), shown, **more)


def test_csv_has_each_number_in_its_own_column(table):
    rows = list(csv.reader(io.StringIO(to_csv(table))))
    assert rows == [
        ["dataset", "id", "ece_mean", "ece_std", "ece_best", "k24_mean", "remark"],
        ["cifar_10", "a", "0.01", "0.002", "1", "", "50 % & more"],
        ["cifar_10", "b", "0.015", "", "0", "0.02", "a|b"],
        ["cifar_10", "c", "", "3.0", "", "", ""],
    ]


def test_markdown(table):
    assert to_markdown(table) == (
        "**A \\*demo\\***\n"
        "\n"
        "| Dataset | ECE (%): ours | ECE (%): K24 | Remark |\n"
        "| --- | ---: | ---: | --- |\n"
        "| cifar\\_10 | **1.00 ± 0.20** |  | 50 % & more |\n"
        "|  | 1.5 | 2 | a\\|b |\n"
        "| cifar\\_10 |  |  |  |\n"
        "\n"
        "- one note\n"
    )


def test_latex(table):
    assert to_latex(table, "demo").splitlines() == [
        "% needs the package booktabs",
        r"\begin{table}",
        r"\centering",
        r"\caption{A *demo*}",
        r"\label{tab:demo}",
        r"\begin{tabular}{lrrl}",
        r"\toprule",
        r" & \multicolumn{2}{c}{ECE (\%)} &  \\",
        r"\cmidrule(lr){2-3}",
        r"Dataset & ours & K24 & Remark \\",
        r"\midrule",
        r"cifar\_10 & \textbf{1.00 $\pm$ 0.20} &  & 50 \% \& more \\",
        r" & 1.5 & 2 & a\textbar{}b \\",
        r"\midrule",
        r"cifar\_10 &  &  &  \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\par\footnotesize one note",
        r"\end{table}",
    ]


def test_a_long_latex_table_continues_on_the_next_page():
    lines = to_latex(plain(["xyp"] * 41, "ABc"), "long").splitlines()
    assert lines[0] == "% needs the packages booktabs and longtable"
    assert lines[1:7] == [
        r"\begin{longtable}{lll}",
        r"\caption{T} \label{tab:long} \\",
        r"\toprule",
        r"A & B & c \\",
        r"\endhead",
        r"\midrule",
    ]
    assert lines[-2:] == [r"\bottomrule", r"\end{longtable}"]
    assert r"\begin{table}" in to_latex(plain(["xyp"] * 40, "ABc"), "short")


def test_html_escapes_and_carries_numbers(table):
    html = to_html(table, "demo")
    assert '<table class="data" id="table-demo" data-sticky="1">' in html
    assert '<th colspan="2" scope="colgroup" class="span">ECE (%)</th>' in html
    assert '<td data-v="0.01"><b>1.00 ± 0.20</b></td>' in html
    assert "50 % &amp; more" in html
    assert html.count("<tbody>") == 2
    assert "<li>one note</li>" in html


def test_html_repeats_merged_texts_so_that_rows_can_be_sorted(table):
    assert to_html(table, "demo").count("<td>cifar_10</td>") == 3


def test_a_merged_column_shows_again_when_one_to_its_left_changes():
    body = to_markdown(plain(["xyp", "xyq", "zyr", "zyr"], "ABc")).splitlines()[4:]
    assert body == ["| x | y | p |", "|  |  | q |", "| z | y | r |", "|  |  | r |"]


def test_an_empty_table_says_so():
    empty = empty_table("Nothing")
    assert to_csv(empty) == "dataset,model,loss\n"
    assert to_markdown(empty).endswith("- No available run has the scores that this table shows.\n")
    assert "<tbody>" not in to_html(empty, "nothing")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("50 % & $1", r"50 \% \& \$1"),
        ("a_b^c~d", r"a\_b\textasciicircum{}c\textasciitilde{}d"),
        ("{x}\\y", r"\{x\}\textbackslash{}y"),
        ("\N{GREEK SMALL LETTER GAMMA} \N{MINUS SIGN}0.5 ± 1 †2", r"$\gamma$ $-$0.5 $\pm$ 1 $^\dagger$2"),
        ("ECE-Ψ < 3", r"ECE-$\Psi$ $<$ 3"),
    ],
)
def test_escape_latex(text, expected):
    assert escape_latex(text) == expected
