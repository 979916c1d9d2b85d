"""Computed checks: named numbers that decide the papers' statements, and the CSV files that hold them."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields

from focalcal.common.csv_rows import write_rows


@dataclass(frozen=True)
class Check:
    """One named number that decides a statement."""

    name: str
    value: float
    detail: str = ""
    """What the number is, or where it occurs."""
    n: int | None = None
    """How many measurements it was computed from; None for a number that is not measured."""
    by_seed: tuple[float, ...] = ()
    """The values that single seeds give; empty unless several seeds cover every measurement."""


COLUMNS = tuple(field.name for field in fields(Check))


def write_checks(path: str | os.PathLike[str], checks: Iterable[Check]) -> None:
    """Write checks as CSV, one row per check; raise ValueError if a name occurs twice."""
    checks = list(checks)
    for name, count in Counter(check.name for check in checks).items():
        if count > 1:
            raise ValueError(f"check {name!r} was computed {count} times")
    rows = []
    for check in checks:
        by_seed = " ".join(repr(float(value)) for value in check.by_seed)
        rows.append({**asdict(check), "value": float(check.value), "by_seed": by_seed})
    write_rows(path, rows, COLUMNS)


def check_from_row(row: Mapping[str, str]) -> Check:
    """Return the check that a row of such a file holds."""
    return Check(
        name=row["name"],
        value=float(row["value"]),
        detail=row["detail"],
        n=int(row["n"]) if row["n"] else None,
        by_seed=tuple(float(text) for text in row["by_seed"].split()),
    )
