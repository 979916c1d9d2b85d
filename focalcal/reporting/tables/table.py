"""A table: a data frame for programs, columns with formats for people, and one writer per file format.

The frame is the CSV. Columns whose names begin with an underscore serve formats only and are not written.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import Any

import pandas as pd

from focalcal.common.csv_rows import unexecuted
from focalcal.reporting.html import render

Row = Mapping[str, Any]
MOST_STICKY = 3
MOST_ROWS_OF_A_FLOAT = 40
"""A LaTeX table with more rows does not fit on a page and continues on the next."""

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
    """A column as people see it."""

    header: str
    text: str | Callable[[Row], str]
    """Name of a text column of the frame, or a function from a row of the frame to the shown text."""
    value: str = ""
    """Name of the frame's column that holds its number, by which readers sort; empty for text."""
    best: str = ""
    """Name of the frame's column that says which cells are best and stand in bold."""
    span: str = ""
    """A heading over neighbouring columns that share it."""
    merge: bool = False
    """Whether a text is shown only where it differs from the row above."""


@dataclass(frozen=True)
class Cell:
    """A text with its number, if any, and whether it stands in bold."""

    text: str
    value: Any = None
    bold: bool = False


@dataclass(frozen=True)
class Table:
    """A table with its title and notes; a rule sets rows apart that differ in the frame's columns `group`."""

    title: str
    frame: pd.DataFrame
    columns: tuple[Column, ...]
    group: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def sticky(self) -> int:
        """Return how many first columns stay in sight when a reader scrolls: those of text, three at most."""
        texts = takewhile(lambda column: not column.value, self.columns[:MOST_STICKY])
        return max(1, sum(1 for _ in texts))

    def groups(self, *, merged: bool = True) -> list[list[list[Cell]]]:
        """Return the cells as people see them, by group and row.

        With `merged`, repeated texts of `merge` columns are blank; a table that readers sort needs all.
        """
        rows = groupby(self.frame.to_dict("records"), lambda row: [row[name] for name in self.group])
        return [list(self._cells(members, merged)) for _, members in rows]

    def _cells(self, rows: Iterable[Row], merged: bool) -> Iterator[list[Cell]]:
        above: list[Any] = [None] * len(self.columns)
        for row in rows:
            texts = [
                column.text(row) if callable(column.text) else row[column.text] for column in self.columns
            ]
            cells, repeats = [], merged
            for column, text, previous in zip(self.columns, texts, above, strict=True):
                if column.merge:
                    # A change shows the merged columns to its right again.
                    repeats = repeats and text == previous
                cells.append(Cell("") if column.merge and repeats else _cell(column, row, text))
            yield cells
            above = texts


def _cell(column: Column, row: Row, text: str) -> Cell:
    value, best = (row[name] if name else None for name in (column.value, column.best))
    return Cell(text, None if pd.isna(value) else value, bold=bool(text) and not pd.isna(best) and best == 1)


def empty_table(title: str) -> Table:
    """Return a table without rows that says so, where the available runs do not fill it."""
    columns = tuple(Column(name.capitalize(), name) for name in ("dataset", "model", "loss"))
    frame = pd.DataFrame(columns=[column.text for column in columns])
    return Table(title, frame, columns, notes=("No available run has the scores that this table shows.",))


def to_csv(table: Table) -> str:
    """Return the frame as CSV; numbers have all their digits."""
    written = [name for name in table.frame.columns if not name.startswith("_")]
    frame = pd.DataFrame({name: _unexecuted(table.frame[name]) for name in written}, columns=written)
    return frame.to_csv(index=False, lineterminator="\n")


def _unexecuted(column: pd.Series) -> pd.Series:
    return column if column.dtype.kind in "iufb" else column.map(unexecuted)


def to_markdown(table: Table) -> str:
    """Return the table as Markdown: title, pipe table with best values in bold, notes as a list."""
    headers = [
        f"{column.span}: {column.header}" if column.span else column.header for column in table.columns
    ]
    lines = [
        f"**{escape_markdown(table.title)}**",
        "",
        _pipe_row(map(escape_markdown, headers)),
        _pipe_row("---:" if column.value else "---" for column in table.columns),
        *(_pipe_row(map(_markdown_text, row)) for group in table.groups() for row in group),
    ]
    if table.notes:
        lines += ["", *(f"- {escape_markdown(note)}" for note in table.notes)]
    return "\n".join(lines) + "\n"


def to_latex(table: Table, name: str) -> str:
    """Return the table for LaTeX with the package booktabs, best values in bold, notes below the rules.

    A long one is a `longtable`, which continues on the next page.
    """
    alignment = "".join("r" if column.value else "l" for column in table.columns)
    caption, label = rf"\caption{{{escape_latex(table.title)}}}", rf"\label{{tab:{name}}}"
    head = [
        r"\toprule",
        *_latex_spans(table),
        _latex_row(escape_latex(column.header) for column in table.columns),
    ]
    body: list[str] = []
    for group in table.groups():
        body += [r"\midrule", *(_latex_row(map(_latex_text, row)) for row in group)]
    notes = [rf"\par\footnotesize {escape_latex(note)}" for note in table.notes]
    if len(table.frame) > MOST_ROWS_OF_A_FLOAT:
        begin = rf"\begin{{longtable}}{{{alignment}}}"
        top = [
            "% needs the packages booktabs and longtable",
            begin,
            rf"{caption} {label} \\",
            *head,
            r"\endhead",
        ]
        lines = [*top, *body, r"\bottomrule", r"\end{longtable}", *notes]
    else:
        top = ["% needs the package booktabs", r"\begin{table}", r"\centering", caption, label]
        inside = [rf"\begin{{tabular}}{{{alignment}}}", *head, *body, r"\bottomrule", r"\end{tabular}"]
        lines = [*top, *inside, *notes, r"\end{table}"]
    return "\n".join(lines) + "\n"


def to_html(table: Table, name: str) -> str:
    """Return the table with its notes as HTML; cells carry their number, so that sorting is by value."""
    return render("table.html", table=table, name=name, spans=spans(table))


def spans(table: Table) -> list[tuple[str, int]]:
    """Return the headings over several columns with their widths; nothing where there are none."""
    found = [
        (span, len(list(members))) for span, members in groupby(table.columns, lambda column: column.span)
    ]
    return found if any(span for span, _ in found) else []


def escape_latex(text: str) -> str:
    """Return `text` with LaTeX's special characters and the symbols used here as LaTeX commands."""
    return "".join(LATEX.get(character, character) for character in text)


def escape_markdown(text: str) -> str:
    """Return `text` with Markdown's special characters escaped."""
    for character in "\\|*_<":
        text = text.replace(character, f"\\{character}")
    return text


def _pipe_row(texts: Any) -> str:
    return f"| {' | '.join(texts)} |"


def _markdown_text(cell: Cell) -> str:
    text = escape_markdown(cell.text)
    return f"**{text}**" if cell.bold else text


def _latex_spans(table: Table) -> list[str]:
    """Return the row of headings over several columns with the rules under them."""
    cells, rules, position = [], [], 1
    for span, width in spans(table):
        if span:
            cells.append(rf"\multicolumn{{{width}}}{{c}}{{{escape_latex(span)}}}")
            rules.append(rf"\cmidrule(lr){{{position}-{position + width - 1}}}")
        else:
            cells += [""] * width
        position += width
    return [_latex_row(cells), " ".join(rules)] if cells else []


def _latex_row(texts: Any) -> str:
    return rf"{' & '.join(texts)} \\"


def _latex_text(cell: Cell) -> str:
    text = escape_latex(cell.text)
    return rf"\textbf{{{text}}}" if cell.bold else text
