"""What the jobs cost: time and memory from the benchmark files of the workflow."""

import csv
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cost:
    """Time and memory of all jobs of one rule."""

    rule: str
    jobs: int
    seconds: float
    longest: float
    memory: float | None
    """Greatest resident memory of a job in MB; None if it could be measured of no job."""


def read_costs(folder: Path) -> list[Cost]:
    """Return the cost of each rule that has benchmark files, the most expensive first."""
    measured: defaultdict[str, list[dict[str, str]]] = defaultdict(list)
    for path in sorted(folder.rglob("*.tsv")):
        rule = path.relative_to(folder).parts[0].removesuffix(".tsv")
        with path.open(encoding="utf-8") as source:
            measured[rule] += csv.DictReader(source, delimiter="\t")
    costs = [
        Cost(
            rule=rule,
            jobs=len(rows),
            seconds=sum(float(row["s"]) for row in rows),
            longest=max(float(row["s"]) for row in rows),
            memory=max(map(_megabytes, rows)) or None,
        )
        for rule, rows in measured.items()
        if rows
    ]
    return sorted(costs, key=lambda cost: -cost.seconds)


def _megabytes(row: dict[str, str]) -> float:
    """Return the memory of a job, 0 if it was too short to measure."""
    return 0.0 if row["max_rss"] in {"NA", "-"} else float(row["max_rss"])
