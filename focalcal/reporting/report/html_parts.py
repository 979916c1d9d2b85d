"""Pieces of the report as HTML text: tables, figures, badges. Everything that comes from data is escaped."""

import base64
import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from focalcal.reporting.report.images import image_size, reduced_png
from focalcal.reporting.tables.cells import MINUS
from focalcal.reporting.tables.formats import Cell, Column, Row, Table, keep_columns

VERDICT_SIGNS = {
    "reproduced": "✓",
    "corrected": "✎",
    "not reproduced": "✗",
    "not run": "–",  # noqa: RUF001
}


def table_html(table: Table) -> str:
    """Return a table with its notes; cells carry their number in data-v, so that sorting is by value."""
    shown = keep_columns(table, [not column.hidden for column in table.columns])
    lines = [
        f'<table class="data" id="table-{escape(table.name)}">',
        f"<caption>{escape(table.title)}</caption>",
    ]
    lines.append("<thead>")
    if any(column.span for column in shown.columns):
        lines.append(f"<tr>{_span_row(shown)}</tr>")
    heads = "".join(
        f'<th scope="col"{_classes(number=bool(column.fields))}>{escape(column.header)}</th>'
        for column in shown.columns
    )
    lines += [f"<tr>{heads}</tr>", "</thead>"]
    for group in shown.groups:
        lines += ["<tbody>", *(_row(row, shown.columns) for row in group), "</tbody>"]
    lines.append("</table>")
    if table.notes:
        lines += ['<ul class="notes">', *(f"<li>{escape(note)}</li>" for note in table.notes), "</ul>"]
    return "\n".join(lines) + "\n"


def plain_table(name: str, title: str, headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of texts and numbers; a pair (text, value) is shown as text and sorted by value.

    Text that is already HTML is given as `Markup`.
    """
    lines = [
        f'<table class="data" id="table-{escape(name)}">',
        f"<caption>{escape(title)}</caption><thead><tr>",
    ]
    rows = list(rows)
    numeric = [any(isinstance(row[i], int | float | tuple) for row in rows) for i in range(len(headers))]
    lines += [
        f'<th scope="col"{_classes(number=is_number)}>{escape(header)}</th>'
        for header, is_number in zip(headers, numeric, strict=True)
    ]
    lines.append("</tr></thead><tbody>")
    lines += [f"<tr>{''.join(_plain_cell(value) for value in row)}</tr>" for row in rows]
    return "\n".join([*lines, "</tbody></table>"]) + "\n"


def markdown_table_html(name: str, text: str) -> str:
    """Return a table that `formats.to_markdown` wrote as HTML, notes included."""
    lines = text.splitlines()
    title = next((_plain(line) for line in lines if line.startswith("**")), name)
    header, rule, *rows = [_split_row(line) for line in lines if line.startswith("|")]
    numeric = [mark.endswith(":") for mark in rule]
    html = [
        f'<table class="data" id="table-{escape(name)}">',
        f"<caption>{escape(title)}</caption><thead><tr>",
    ]
    html += [
        f'<th scope="col"{_classes(number=is_number)}>{escape(_plain(cell))}</th>'
        for cell, is_number in zip(header, numeric, strict=True)
    ]
    html.append("</tr></thead><tbody>")
    for row in rows:
        cells = zip(row, numeric, strict=True)
        html.append(f"<tr>{''.join(_markdown_cell(cell, is_number) for cell, is_number in cells)}</tr>")
    html.append("</tbody></table>")
    notes = [f"<li>{escape(_plain(line[2:]))}</li>" for line in lines if line.startswith("- ")]
    return "\n".join(html) + (f'\n<ul class="notes">{"".join(notes)}</ul>' if notes else "") + "\n"


class Markup(str):
    """A text that is HTML already."""

    __slots__ = ()


def badge(verdict: str) -> Markup:
    """Return a verdict as sign and word, so that it is read without its colour."""
    sign = VERDICT_SIGNS.get(verdict, "•")
    kind = verdict.replace(" ", "-")
    name = escape(verdict)
    attributes = f'class="badge {escape(kind)}" data-verdict="{name}"'
    return Markup(f'<span {attributes}><span aria-hidden="true">{sign}</span> {name}</span>')


def figure_html(path: Path, name: str, heading: str, caption: str = "", *, attributes: str = "") -> str:
    """Return a figure with the image inside; a press or Enter on it opens it large."""
    width, height = image_size(path)
    size = f'width="{width}" height="{height}" style="--width:{width}px"'
    alternative = escape(f"{heading}. {caption}" if caption else heading)
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return (
        f'<figure id="figure-{escape(name)}"{attributes}>'
        f'<button class="zoom" type="button" aria-label="Enlarge: {escape(heading)}">'
        f'<img src="{data_uri(path)}" alt="{alternative}" {size}></button>{below}</figure>\n'
    )


def data_uri(path: Path) -> str:
    """Return a PNG as a data URI, its colours reduced to a palette."""
    return f"data:image/png;base64,{base64.b64encode(reduced_png(path)).decode('ascii')}"


def _plain_cell(value: object) -> str:
    if isinstance(value, tuple):
        text, number = value
        return f'<td class="n" data-v="{number}">{escape(str(text))}</td>'
    if isinstance(value, Markup):
        return f"<td>{value}</td>"
    if isinstance(value, int | float):
        return f'<td class="n" data-v="{value}">{value:,}</td>'
    return f"<td>{escape(str(value))}</td>"


def _split_row(line: str) -> list[str]:
    """Return the cells of a pipe row; an escaped pipe is no border."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def _plain(text: str) -> str:
    """Return text without Markdown's bold marks and escapes."""
    return re.sub(r"\\(.)", r"\1", text.removeprefix("**").removesuffix("**"))


def _markdown_cell(cell: str, is_number: bool) -> str:
    text = _plain(cell)
    value = re.match(r"[+\-\u2212]?\d[\d,]*\.?\d*(?:e[+-]?\d+)?", text) if is_number else None
    data = f' data-v="{value[0].replace(",", "").replace(MINUS, "-")}"' if value else ""
    bold = cell.startswith("**") and text
    return f"<td{_classes(number=is_number)}{data}>{f'<b>{escape(text)}</b>' if bold else escape(text)}</td>"


def _row(row: Row, columns: Sequence[Column]) -> str:
    cells = (_cell(cell, bool(column.fields)) for cell, column in zip(row, columns, strict=True))
    return f"<tr>{''.join(cells)}</tr>"


def _cell(cell: Cell, is_number: bool) -> str:
    text = escape(cell.text)
    value = next((number for number in cell.numbers[:1] if number is not None), None)
    data = "" if value is None else f' data-v="{value}"'
    return f"<td{_classes(number=is_number)}{data}>{f'<b>{text}</b>' if cell.best and text else text}</td>"


def _span_row(table: Table) -> str:
    cells = []
    for span, members in groupby(table.columns, key=lambda column: column.span):
        width = len(list(members))
        scope = ' scope="colgroup" class="span"' if span else ""
        cells.append(
            f'<th colspan="{width}"{scope}>{escape(span)}</th>' if span else f'<td colspan="{width}"></td>'
        )
    return "".join(cells)


def _classes(*, number: bool) -> str:
    return ' class="n"' if number else ""
