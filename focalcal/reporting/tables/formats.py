"""One table, three spellings: CSV for programs, Markdown for people, LaTeX (booktabs) for papers."""

import csv
import io
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, groupby
from pathlib import Path

from focalcal.common.io import write_text

LATEX = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "\N{MINUS SIGN}": "$-$",
    "\N{GREEK SMALL LETTER GAMMA}": r"$\gamma$",
    "Ψ": r"$\Psi$",
    "…": r"\ldots{}",
    "\N{EN DASH}": "--",
    "†": r"$^\dagger$",
    "<": "$<$",
    ">": "$>$",
    "|": r"\textbar{}",
}


@dataclass(frozen=True)
class Column:
    """A column: how people read it and which CSV columns hold the numbers behind its cells."""

    key: str
    """Name in the CSV; with `fields`, the prefix `key_field` of each number's column."""
    header: str
    fields: tuple[str, ...] = ()
    """Names of a cell's numbers; without any the cell is text."""
    span: str = ""
    """A heading over neighbouring columns that share it."""
    ranked: bool = False
    """Whether cells can be best, which the CSV says in `key_best`."""
    merge: bool = False
    """Whether people see a text only where it changes from the row above."""
    hidden: bool = False
    """Whether only the CSV has it."""


@dataclass(frozen=True)
class Cell:
    """What stands in one place: a text for people, the unrounded numbers for programs."""

    text: str = ""
    numbers: tuple[float | int | str | None, ...] = ()
    best: bool = False


Row = tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """A table with its title and notes; `groups` of rows are set apart by a rule."""

    name: str
    title: str
    columns: tuple[Column, ...]
    groups: tuple[tuple[Row, ...], ...]
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.name}: a row has {len(row)} cells, not {len(self.columns)}")
            for column, cell in zip(self.columns, row, strict=True):
                if cell.numbers and len(cell.numbers) != len(column.fields):
                    raise ValueError(
                        f"table {self.name}: a cell of column {column.key} has {len(cell.numbers)} numbers, "
                        f"not {len(column.fields)}"
                    )

    @property
    def rows(self) -> list[Row]:
        """Return the rows of all groups."""
        return [row for group in self.groups for row in group]


def to_csv(table: Table) -> str:
    """Return the table as CSV with a header: texts as they are, each number in a column of its own."""
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow([name for column in table.columns for name in _csv_names(column)])
    for row in table.rows:
        writer.writerow(
            [
                value
                for column, cell in zip(table.columns, row, strict=True)
                for value in _csv_values(column, cell)
            ]
        )
    return target.getvalue()


def to_markdown(table: Table) -> str:
    """Return the table as Markdown: title, pipe table with best values in bold, notes as a list."""
    table = _without_hidden(table)
    headers = [
        f"{column.span}: {column.header}" if column.span else column.header for column in table.columns
    ]
    lines = [
        f"**{_escape_markdown(table.title)}**",
        "",
        _pipe_row([_escape_markdown(header) for header in headers]),
        _pipe_row(["---:" if column.fields else "---" for column in table.columns]),
        *(_pipe_row([_markdown_cell(cell) for cell in row]) for row in _merged(table)),
    ]
    if table.notes:
        lines += ["", *(f"- {_escape_markdown(note)}" for note in table.notes)]
    return "\n".join(lines) + "\n"


def to_latex(table: Table) -> str:
    """Return the table as a LaTeX `table` (package booktabs), best values in bold, notes under the rules."""
    table = _without_hidden(table)
    alignment = "".join("r" if column.fields else "l" for column in table.columns)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(table.title)}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        *_latex_spans(table),
        _latex_row([escape_latex(column.header) for column in table.columns]),
    ]
    merged = iter(_merged(table))
    for group in table.groups:
        lines.append(r"\midrule")
        lines += [_latex_row([_latex_cell(cell) for cell in next(merged)]) for _ in group]
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\footnotesize {escape_latex(note)}" for note in table.notes]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def escape_latex(text: str) -> str:
    """Return `text` with LaTeX's special characters and the symbols used here as LaTeX commands."""
    return "".join(LATEX.get(character, character) for character in text)


def keep_columns(table: Table, keep: Sequence[bool]) -> Table:
    """Return the table with only the columns whose place in `keep` is true."""
    return replace(
        table,
        columns=tuple(compress(table.columns, keep)),
        groups=tuple(tuple(tuple(compress(row, keep)) for row in group) for group in table.groups),
    )


def write_table(table: Table, folder: str | os.PathLike[str]) -> list[Path]:
    """Write `NAME.csv`, `NAME.md` and `NAME.tex` into `folder` and return their paths."""
    written = []
    for suffix, render in (("csv", to_csv), ("md", to_markdown), ("tex", to_latex)):
        path = Path(folder) / f"{table.name}.{suffix}"
        write_text(path, render(table))
        written.append(path)
    return written


def _without_hidden(table: Table) -> Table:
    return keep_columns(table, [not column.hidden for column in table.columns])


def _merged(table: Table) -> list[Row]:
    """Return the rows as people see them: texts of `merge` columns blank where they repeat within a group."""
    rows = []
    for group in table.groups:
        above: Row | None = None
        for row in group:
            rows.append(
                tuple(
                    Cell() if hidden else cell
                    for cell, hidden in zip(row, _repeats(table, row, above), strict=True)
                )
            )
            above = row
    return rows


def _repeats(table: Table, row: Row, above: Row | None) -> list[bool]:
    """Return for each cell whether to hide it; a change shows every merged column to its right too."""
    hidden, same = [], above is not None
    for index, column in enumerate(table.columns):
        if column.merge:
            same = same and above is not None and row[index].text == above[index].text
        hidden.append(column.merge and same)
    return hidden


def _csv_names(column: Column) -> list[str]:
    names = [f"{column.key}_{name}" for name in column.fields] or [column.key]
    return [*names, f"{column.key}_best"] if column.ranked else names


def _csv_values(column: Column, cell: Cell) -> list[str]:
    if column.fields:
        values = [_csv_value(number) for number in cell.numbers] or [""] * len(column.fields)
    else:
        values = [cell.text]
    return [*values, str(int(cell.best)) if cell.numbers else ""] if column.ranked else values


def _csv_value(value: float | str | None) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(float(value)) if isinstance(value, float) else str(value)


def _pipe_row(texts: list[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _markdown_cell(cell: Cell) -> str:
    text = _escape_markdown(cell.text)
    return f"**{text}**" if cell.best and text else text


def _escape_markdown(text: str) -> str:
    for character in "\\|*_<":
        text = text.replace(character, f"\\{character}")
    return text


def _latex_spans(table: Table) -> list[str]:
    """Return the row of headings over several columns with the rules under them, or nothing without any."""
    if not any(column.span for column in table.columns):
        return []
    cells, rules, position = [], [], 1
    for span, members in groupby(table.columns, key=lambda column: column.span):
        width = len(list(members))
        if span:
            cells.append(rf"\multicolumn{{{width}}}{{c}}{{{escape_latex(span)}}}")
            rules.append(rf"\cmidrule(lr){{{position}-{position + width - 1}}}")
        else:
            cells += [""] * width
        position += width
    return [_latex_row(cells), " ".join(rules)]


def _latex_row(texts: list[str]) -> str:
    return rf"{' & '.join(texts)} \\"


def _latex_cell(cell: Cell) -> str:
    text = escape_latex(cell.text)
    return rf"\textbf{{{text}}}" if cell.best and text else text
