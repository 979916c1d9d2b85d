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
    setting: str = ""
    """The setting of a paper's statement that it was measured for; empty for a number without runs."""
    place: str = ""
    """Dataset and model that it was measured on."""
    outside: str = ""
    """Why that place is outside the setting; empty if it is inside."""
    half_width: float | None = None
    """Half the width of its interval over test samples; None if seeds give one, or nothing was sampled."""


COLUMNS = tuple(field.name for field in fields(Check))


def write_checks(path: str | os.PathLike[str], checks: Iterable[Check]) -> None:
    """Write checks as CSV, one row per check; raise ValueError if one occurs twice."""
    checks = list(checks)
    counts = Counter((check.name, check.setting, check.place) for check in checks)
    for names, count in counts.items():
        if count > 1:
            raise ValueError(f"check {' / '.join(filter(None, names))!r} was computed {count} times")
    rows = []
    for check in checks:
        by_seed = " ".join(repr(float(value)) for value in check.by_seed)
        half_width = "" if check.half_width is None else float(check.half_width)
        rows.append(
            {**asdict(check), "value": float(check.value), "by_seed": by_seed, "half_width": half_width}
        )
    write_rows(path, rows, COLUMNS)


def check_from_row(row: Mapping[str, str]) -> Check:
    """Return the check that a row of such a file holds."""
    return Check(
        **{name: row[name] for name in ("name", "detail", "setting", "place", "outside")},
        value=float(row["value"]),
        n=int(row["n"]) if row["n"] else None,
        by_seed=tuple(float(text) for text in row["by_seed"].split()),
        half_width=float(row["half_width"]) if row["half_width"] else None,
    )
