"""What the report shows, read from a results folder: runs, claims, cost, provenance, where figures are."""

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from focalcal.reporting import recovery_layout
from focalcal.reporting.layout import Places
from focalcal.reporting.records.files import read_record, read_runs, run_path, succeeded
from focalcal.workflow.grid import Grid


@dataclass(frozen=True)
class Cost:
    """Time and memory of all jobs of one rule, from their benchmark files."""

    rule: str
    jobs: int
    seconds: float
    longest: float
    memory: float | None
    """Greatest resident memory of a job in MB; None where the jobs were too short to measure."""


@dataclass(frozen=True)
class Sources:
    """All that the report is written from."""

    results: Path
    config: Mapping[str, Any]
    headline: Mapping[str, Any]
    runs: Sequence[Mapping[str, str]]
    """Rows of runs.csv, with `path` and for those that failed `message`."""
    missing: Sequence[str]
    """Folders of runs of the configuration that left no record."""
    places: Places
    data: Sequence[Mapping[str, Any]]
    """Records of the prepared datasets."""
    claims: Sequence[Mapping[str, str]]
    costs: Sequence[Cost]
    provenance: Mapping[str, Mapping[str, int]]
    """What differs or not between runs: property -> value -> number of runs."""
    code: Mapping[str, Mapping[str, int]]
    """Module -> digest -> number of runs made by it."""
    captions: Mapping[str, tuple[str, str]]
    """Heading and caption of the recovery stage's figures (`recovery/NAME`) and tables (NAME)."""


def read_sources(results: Path, config: Mapping[str, Any], grid: Grid) -> Sources:
    """Return what a finished results folder says; `config` is what `grid` was built from."""
    runs = [dict(run) for run in read_runs(results / "tables" / "runs.csv")]
    records = {run["path"]: read_record(results, run) for run in runs}
    for run in runs:
        run["message"] = records[run["path"]].get("message") or ""
    known = {run["path"] for run in runs}
    provenance, code = _provenance(records.values())
    return Sources(
        results=results,
        config=config,
        headline=_read_json(results / "tables" / "headline.json"),
        runs=runs,
        missing=[run.path for run in grid if run.path not in known],
        places=Places(grid),
        data=[_read_json(results / "data" / f"{dataset}.json") for dataset in grid.datasets],
        claims=_read_csv(results / "tables" / "claims.csv"),
        costs=read_costs(results / "benchmarks"),
        provenance=provenance,
        code=code,
        captions=_captions(grid, config),
    )


def read_costs(folder: Path) -> list[Cost]:
    """Return the cost of each rule that has benchmark files, the most expensive first."""
    measured = defaultdict(list)
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
            memory=max(
                (float(row["max_rss"]) for row in rows if row["max_rss"] not in {"NA", "-"}), default=None
            ),
        )
        for rule, rows in measured.items()
        if rows
    ]
    return sorted(costs, key=lambda cost: -cost.seconds)


def failed(runs: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Return the runs whose numbers do not count."""
    good = {run_path(run) for run in succeeded(runs)}
    return [run for run in runs if run["path"] not in good]


def _captions(grid: Grid, config: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    plan = recovery_layout.Plan(grid, grid, config["recovery"], config["datasets"])
    figures = {f"recovery/{figure.name}": (figure.heading, figure.caption) for figure in plan.figures}
    return figures | {table.name: (table.heading, table.caption) for table in plan.tables}


def _provenance(records: Any) -> tuple[dict[str, Counter], dict[str, Counter]]:
    """Return how many runs have each commit, version, platform and device, and each code digest."""
    found: dict[str, Counter] = defaultdict(Counter)
    code: dict[str, Counter] = defaultdict(Counter)
    for record in records:
        origin = record["provenance"]
        values = {
            "git commit": origin.get("git_commit") or "not a git checkout",
            "Python": origin.get("python"),
            "platform": origin.get("platform"),
            "device": " ".join(filter(None, (record.get("device"), record.get("device_name")))) or "imported",
            **origin.get("packages", {}),
        }
        for name, value in values.items():
            found[name][str(value)] += 1
        for path, digest in origin.get("code", {}).items():
            code[path][digest] += 1
    return found, dict(sorted(code.items()))


def _read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as source:
        return list(csv.DictReader(source))


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
