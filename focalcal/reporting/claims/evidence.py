"""What an evaluator is given and what it returns: a claim and evidence files in, a finding out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from focalcal.common.checks import Check, check_from_row
from focalcal.common.csv_rows import read_rows
from focalcal.common.io import read_json
from focalcal.reporting.claims.settings import THEORY, Setting

PACKAGE = "focalcal/"
NOT_RUN = "not run"
ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Claim:
    """One checkable statement: where it is printed, what is printed, and how it is evaluated."""

    id: str
    source: str
    statement: str
    published: str
    tolerance: float
    evaluator: str
    evidence: tuple[str, ...]
    """Files that show the numbers, results/... or transcribed ones of focalcal/...; `table` is read."""
    kind: str = "exact"
    """exact: computed, so that a disagreement corrects the paper; empirical: measured in experiments."""
    setting: Setting = THEORY
    """The runs that the statement is about."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    others: tuple["Claim", ...] = ()
    """The other parts of a statement of several parts, which differ in evaluator and arguments."""

    @property
    def parts(self) -> tuple["Claim", ...]:
        """All parts of the statement, which holds if all of them do."""
        return (self, *self.others)

    @property
    def table(self) -> str:
        """The file that the evaluator reads: the last of the evidence."""
        return self.evidence[-1]


class MissingEvidence(Exception):  # noqa: N818 - not an error: this configuration has not computed it
    """The evidence for a claim does not exist here: a file or a row of it is missing."""


@dataclass(frozen=True)
class Finding:
    """What was measured, in words a reader can check, and whether it agrees; None if nothing was run."""

    agrees: bool | None
    measured: str

    def verdict(self, kind: str) -> str:
        """Return the verdict on a claim of that kind."""
        if self.agrees is None:
            return NOT_RUN
        if self.agrees:
            return "reproduced"
        return "corrected" if kind == "exact" else "not reproduced"


class Evidence:
    """The result files that may be read, each found by the end of its path (results/...) and read once.

    Files of the package, named from its root (focalcal/...), may always be read.
    """

    def __init__(self, files: Iterable[Path]):
        self.files = tuple(files)
        self.table = cache(self._table)

    def json(self, name: str) -> Any:
        """Return the value of a JSON file, or raise MissingEvidence."""
        return read_json(self._file(name))

    def rows(self, name: str, where: Mapping[str, Any], *, single: bool = False) -> list[dict[str, str]]:
        """Return the rows whose columns have the values of `where`; raise MissingEvidence if there are none.

        With `single` more than one is refused too.
        """
        rows = [row for row in self.table(name) if all(_same(row[key], where[key]) for key in where)]
        if not rows or (single and len(rows) > 1):
            wanted = ", ".join(f"{key} {value}" for key, value in where.items())
            found = "no row" if not rows else f"{len(rows)} rows"
            raise MissingEvidence(f"not run: {name} has {found} with {wanted}")
        return rows

    def row(self, name: str, where: Mapping[str, Any]) -> dict[str, str]:
        """Return the one row whose columns have the values of `where`, or raise MissingEvidence."""
        return self.rows(name, where, single=True)[0]

    def checks(self, name: str, check: str, setting: str = "") -> list[Check]:
        """Return a check of a file of checks at each place it was measured, or raise MissingEvidence."""
        # A number without runs belongs to every setting.
        rows = [row for row in self.table(name) if row["name"] == check and row["setting"] in ("", setting)]
        if not rows:
            raise MissingEvidence("not run: no run has the scores that this statement needs")
        return [check_from_row(row) for row in rows]

    def check(self, name: str, check: str) -> Check:
        """Return the one check of that name, or raise MissingEvidence."""
        return check_from_row(self.row(name, {"name": check}))

    def _table(self, name: str) -> list[dict[str, str]]:
        """Return the rows of a CSV file, or raise MissingEvidence."""
        return read_rows(self._file(name))

    def _file(self, name: str) -> Path:
        """Return the file of that name; raise ValueError if it was not declared."""
        if name.startswith(PACKAGE):
            return ROOT / name
        parts = PurePosixPath(name).parts
        for path in self.files:
            if path.parts[-len(parts) :] == parts:
                if not path.exists():
                    raise MissingEvidence(f"{name} was not made")
                return path
        declared = ", ".join(map(str, self.files)) or "none"
        raise ValueError(f"{name} is not declared as evidence; declared: {declared}")


def _same(text: str, value: Any) -> bool:
    """Return whether a CSV cell holds `value`, numbers compared as numbers."""
    try:
        return float(text) == float(value)
    except (TypeError, ValueError):
        return text == str(value)
