"""CSV files as rows: dictionaries with one key per column."""

import csv
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from focalcal.common.io import atomic_output, refusing_damage

PLUMBING = True
FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.])(?=.)")
"""The beginning of a formula; what follows the sign of a number is none."""


def read_rows(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Return the rows of a CSV file, every cell as text; raise a UserError if the file is empty or cut."""
    with refusing_damage(path), Path(path).open(encoding="utf-8", newline="") as source:
        reader = csv.DictReader(source)
        if not reader.fieldnames:
            raise ValueError("it has no header")
        rows = list(reader)
        if number := uneven_row(rows):
            raise ValueError(f"row {number} does not have {len(reader.fieldnames)} cells")
        return rows


def uneven_row(rows: Iterable[Mapping[str | None, Any]]) -> int | None:
    """Return the number, from 1, of the first row of a DictReader with more or fewer cells than columns."""
    uneven = (number for number, row in enumerate(rows, start=1) if None in row or None in row.values())
    return next(uneven, None)


def write_rows(
    path: str | os.PathLike[str], rows: Iterable[Mapping[str, Any]], columns: Sequence[str] | None = None
) -> None:
    """Write rows as CSV, atomically and with every digit of a float.

    The columns are those of the first row unless `columns` names them, as it must for a table that may be
    empty.
    """
    rows = list(rows)
    with atomic_output(path) as partial, partial.open("w", encoding="utf-8", newline="") as target:
        writer = csv.DictWriter(target, list(columns or rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: unexecuted(value) for name, value in row.items()} for row in rows)


def unexecuted(cell: Any) -> Any:
    """Return a cell with an apostrophe before a text that spreadsheets would take for a formula."""
    return f"'{cell}" if isinstance(cell, str) and FORMULA.match(cell) else cell
