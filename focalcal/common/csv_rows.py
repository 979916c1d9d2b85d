"""CSV files as rows: dictionaries with one key per column."""

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from focalcal.common.io import atomic_output


def read_rows(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Return the rows of a CSV file, every cell as text."""
    with Path(path).open(encoding="utf-8", newline="") as source:
        return list(csv.DictReader(source))


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
        writer.writerows(rows)
