"""What an evaluator is given and what it returns: a claim and evidence files in, a finding out."""

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Claim:
    """One checkable statement: where it is printed, what is printed, and how it is evaluated."""

    id: str
    source: str
    statement: str
    published: str
    tolerance: float
    evaluator: str
    evidence: str
    kind: str = "exact"
    """exact: computed, not sampled, so that a disagreement corrects the paper; empirical: it does not."""
    arguments: Mapping[str, Any] = field(default_factory=dict)


class MissingEvidence(Exception):  # noqa: N818 - not an error: this configuration has not computed it
    """The evidence for a claim does not exist here: a file or a row of it is missing."""


@dataclass(frozen=True)
class Finding:
    """What was measured, in words a reader can check, and whether it agrees; None where nothing was run."""

    agrees: bool | None
    measured: str


class Evidence:
    """Result files under a root folder, each read once."""

    def __init__(self, root: Path):
        self.root = root
        self._tables: dict[str, list[dict[str, str]]] = {}

    def table(self, path: str) -> list[dict[str, str]]:
        """Return the rows of a CSV file, or raise MissingEvidence."""
        if path not in self._tables:
            with self._existing(path).open(encoding="utf-8", newline="") as source:
                self._tables[path] = list(csv.DictReader(source))
        return self._tables[path]

    def json(self, path: str) -> Any:
        """Return the value of a JSON file, or raise MissingEvidence."""
        return json.loads(self._existing(path).read_text(encoding="utf-8"))

    def row(self, path: str, where: Mapping[str, Any]) -> dict[str, str]:
        """Return the one row whose columns have the values of `where`, or raise MissingEvidence."""
        rows = [
            row for row in self.table(path) if all(_same(row[key], value) for key, value in where.items())
        ]
        if len(rows) != 1:
            wanted = ", ".join(f"{key} {value}" for key, value in where.items())
            raise MissingEvidence(f"{len(rows)} rows with {wanted} in {path}")
        return rows[0]

    def _existing(self, path: str) -> Path:
        """Return the file, or raise MissingEvidence."""
        full = self.root / path
        if not full.is_file():
            raise MissingEvidence(f"{path} was not made")
        return full


def _same(text: str, value: Any) -> bool:
    """Return whether a CSV cell holds `value`, numbers compared as numbers."""
    try:
        return float(text) == float(value)
    except (TypeError, ValueError):
        return text == str(value)
