"""What the jobs cost: time and memory from the benchmark files of the workflow."""

import csv
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from focalcal.common.io import refusing_damage


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
    measured: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for path in sorted(folder.rglob("*.tsv")):
        rule = path.relative_to(folder).parts[0].removesuffix(".tsv")
        with refusing_damage(path), path.open(encoding="utf-8") as source:
            rows = csv.DictReader(source, delimiter="\t", restval="")
            measured[rule] += [(float(row["s"]), _megabytes(row)) for row in rows]
    costs = [
        Cost(
            rule=rule,
            jobs=len(jobs),
            seconds=sum(seconds for seconds, _ in jobs),
            longest=max(seconds for seconds, _ in jobs),
            memory=max(memory for _, memory in jobs) or None,
        )
        for rule, jobs in measured.items()
        if jobs
    ]
    return sorted(costs, key=lambda cost: -cost.seconds)


def _megabytes(row: dict[str, str]) -> float:
    """Return the memory of a job, 0 if it was too short to measure."""
    return 0.0 if row["max_rss"] in {"NA", "-"} else float(row["max_rss"])
