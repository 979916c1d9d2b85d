"""Tables as HTML text. Everything that comes from data is escaped."""

from collections.abc import Sequence
from html import escape
from itertools import groupby

from focalcal.reporting.tables.formats import Cell, Column, Row, Table, keep_columns


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
