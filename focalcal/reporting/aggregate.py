"""One tidy table from all runs, and the refusal of runs that do not belong to this configuration or code."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from focalcal.workflow.errors import UserError
from focalcal.workflow.grid import Grid, Run
from focalcal.workflow.io import atomic_output
from focalcal.workflow.provenance import code_digests

METRIC_COLUMNS = "dataset,model,loss,seed,method,criterion,gamma,temperature,split,metric,value"
RUN_COLUMNS = (
    "dataset",
    "model",
    "loss",
    "seed",
    "epochs",
    "status",
    "device",
    "wall_seconds",
    "git_commit",
    "slurm_job_id",
)
STAGES = ("calibration", "recovery")
SHOWN_RUNS = 5


@dataclass(frozen=True)
class Record:
    """A run of the grid with what its run.json says about it."""

    run: Run
    content: dict[str, Any]

    @property
    def succeeded(self) -> bool:
        """Return whether the run's numbers may enter averages."""
        return self.content["status"] == "ok"


def read_records(grid: Grid, results: Path) -> list[Record]:
    """Return each run's record in the grid's order; a UserError names the runs that are stale."""
    records = [Record(run, _read_json(results / "runs" / run.path / "run.json")) for run in grid]
    stale = [(record.run.path, reason) for record in records for reason in _staleness(record, grid, results)]
    if stale:
        listed = "; ".join(f"{path}: {reason}" for path, reason in stale[:SHOWN_RUNS])
        more = f"; and {len(stale) - SHOWN_RUNS} more" if len(stale) > SHOWN_RUNS else ""
        raise UserError(
            f"stale runs, made by another configuration or other code ({listed}{more}); allowed: records "
            f"that match; run `snakemake --cores all --forcerun train import_logits` to make them again"
        )
    return records


def write_metrics(records: list[Record], results: Path, path: Path) -> None:
    """Write the rows of all succeeded runs and stages, one header above them."""
    with atomic_output(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as target:
        target.write(f"{METRIC_COLUMNS}\n")
        for record in records:
            if record.succeeded:
                for stage in STAGES:
                    target.writelines(_rows(results / stage / record.run.path / "metrics.csv"))


def write_runs(records: list[Record], path: Path) -> None:
    """Write one row a run, failed ones among them: what it is, how it ended, where it ran."""
    with atomic_output(path) as partial, partial.open("w", encoding="utf-8", newline="") as target:
        writer = csv.DictWriter(target, RUN_COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for record in records:
            epochs = record.content["spec"].get("recipe", {}).get("epochs")
            written = {**record.content["provenance"], **record.content, **vars(record.run)}
            writer.writerow({**written, "epochs": epochs})


def _rows(path: Path) -> Iterator[str]:
    """Yield the lines of a stage's table below its header, which must be the one all stages share."""
    with path.open(encoding="utf-8") as source:
        header = source.readline().rstrip("\n")
        if header != METRIC_COLUMNS:
            raise UserError(
                f"{path} has the columns {header!r}; allowed: {METRIC_COLUMNS!r}; delete it and rerun"
            )
        yield from source


def _staleness(record: Record, grid: Grid, results: Path) -> Iterator[str]:
    """Yield each reason why a run does not belong to this configuration, this code or this data."""
    run, content = record.run, record.content
    imported = run.imported is not None
    expected_spec = grid.import_spec(run) if imported else grid.training_spec(run)
    if content["spec"] != json.loads(expected_spec):
        yield "its settings differ"
    entry_point = f"workflow_scripts/{'import_logits' if imported else 'train'}.py"
    recorded, current = content["provenance"]["code"], code_digests(entry_point)
    changed = sorted(
        path for path in recorded.keys() | current.keys() if recorded.get(path) != current.get(path)
    )
    if changed:
        yield f"its code differs in {', '.join(changed)}"
    if not imported:
        checksum = _read_json(results / "data" / f"{run.dataset}.json")["checksum"]
        if content["data_checksum"] != checksum:
            yield "its data differ"


def _read_json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))
