import csv
import io
import math

import pytest

from focalcal.reporting.tables.formats import (
    Cell,
    Column,
    Table,
    escape_latex,
    keep_columns,
    to_csv,
    to_latex,
    to_markdown,
    write_table,
)


@pytest.fixture
def table():
    columns = (
        Column("dataset", "Dataset", merge=True),
        Column("id", "Id", hidden=True),
        Column("ece", "ours", ("mean", "std"), span="ECE (%)", ranked=True),
        Column("ece_published", "K24", ("mean",), span="ECE (%)"),
        Column("remark", "Remark"),
    )
    rows_one = (
        (
            Cell("cifar_10"),
            Cell("a"),
            Cell("1.00 ± 0.20", (0.01, 0.002), best=True),
            Cell(),
            Cell("50 % & more"),
        ),
        (Cell("cifar_10"), Cell("b"), Cell("1.5", (0.015, None)), Cell("2", (0.02,)), Cell("a|b")),
    )
    rows_two = ((Cell("cifar_10"), Cell("c"), Cell("nan", (math.nan, 3)), Cell(), Cell()),)
    return Table("demo", "A *demo*", columns, (rows_one, rows_two), ("one note",))


def test_csv_has_each_number_in_its_own_column(table):
    rows = list(csv.reader(io.StringIO(to_csv(table))))
    assert rows == [
        ["dataset", "id", "ece_mean", "ece_std", "ece_best", "ece_published_mean", "remark"],
        ["cifar_10", "a", "0.01", "0.002", "1", "", "50 % & more"],
        ["cifar_10", "b", "0.015", "", "0", "0.02", "a|b"],
        ["cifar_10", "c", "", "3", "0", "", ""],
    ]


def test_csv_numbers_keep_every_digit():
    value = 0.1 + 0.2
    text = to_csv(Table("t", "T", (Column("x", "X", ("mean",)),), (((Cell("0.3", (value,)),),),)))
    assert float(text.splitlines()[1]) == value


def test_markdown(table):
    assert to_markdown(table) == (
        "**A \\*demo\\***\n"
        "\n"
        "| Dataset | ECE (%): ours | ECE (%): K24 | Remark |\n"
        "| --- | ---: | ---: | --- |\n"
        "| cifar\\_10 | **1.00 ± 0.20** |  | 50 % & more |\n"
        "|  | 1.5 | 2 | a\\|b |\n"
        "| cifar\\_10 | nan |  |  |\n"
        "\n"
        "- one note\n"
    )


def test_latex(table):
    assert to_latex(table).splitlines() == [
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
        r"cifar\_10 & nan &  &  \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\par\footnotesize one note",
        r"\end{table}",
    ]


def test_latex_without_spans_or_notes():
    text = to_latex(Table("t", "T", (Column("x", "X"),), (((Cell("y"),),),)))
    assert "multicolumn" not in text
    assert "cmidrule" not in text
    assert "footnotesize" not in text


def test_a_merged_column_shows_again_when_one_to_its_left_changes():
    columns = (Column("a", "A", merge=True), Column("b", "B", merge=True), Column("c", "C"))
    texts = ["xyp", "xyq", "zyr", "zyr"]
    table = Table("t", "T", columns, (tuple(tuple(Cell(letter) for letter in text) for text in texts),))
    body = to_markdown(table).splitlines()[4:]
    assert body == ["| x | y | p |", "|  |  | q |", "| z | y | r |", "|  |  | r |"]


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


def test_keep_columns(table):
    kept = keep_columns(table, [True, False, False, False, True])
    assert [column.key for column in kept.columns] == ["dataset", "remark"]
    assert [[cell.text for cell in row] for row in kept.rows] == [
        ["cifar_10", "50 % & more"],
        ["cifar_10", "a|b"],
        ["cifar_10", ""],
    ]


def test_write_table(tmp_path, table):
    paths = write_table(table, tmp_path / "tables")
    assert [path.name for path in paths] == ["demo.csv", "demo.md", "demo.tex"]
    assert [path.read_text(encoding="utf-8") for path in paths] == [
        to_csv(table),
        to_markdown(table),
        to_latex(table),
    ]


def test_a_row_of_the_wrong_length_is_an_error():
    with pytest.raises(ValueError, match="table t: a row has 2 cells, not 1"):
        Table("t", "T", (Column("x", "X"),), (((Cell(), Cell()),),))


def test_a_cell_with_the_wrong_numbers_is_an_error():
    with pytest.raises(ValueError, match="table t: a cell of column x has 2 numbers, not 1"):
        Table("t", "T", (Column("x", "X", ("mean",)),), (((Cell("1", (1.0, 2.0)),),),))
