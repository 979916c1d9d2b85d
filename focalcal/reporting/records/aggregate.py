"""One tidy table from all runs, and the refusal of runs that do not belong to this configuration or code."""

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from focalcal.calibration.tidy import COLUMNS
from focalcal.common.errors import UserError
from focalcal.common.io import atomic_output
from focalcal.workflow.grid import Grid, Run
from focalcal.workflow.provenance import code_digests

METRIC_HEADER = ",".join(COLUMNS)
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
SHOWN_NAMES = 5


@dataclass(frozen=True)
class Record:
    """A run of the grid with what its run.json says about it."""

    run: Run
    content: dict[str, Any]

    @property
    def succeeded(self) -> bool:
        """Return whether the run's numbers may enter averages."""
        return self.content["status"] == "ok"


class _Product(NamedTuple):
    """A record that a job of one run leaves, and what it has to say."""

    rule: str
    noun: str
    content: dict[str, Any]
    spec: dict[str, Any]


def read_records(grid: Grid, results: Path) -> list[Record]:
    """Return each run's record in the grid's order; a UserError names the runs that are stale."""
    records = [Record(run, _read_json(results / "runs" / run.path / "run.json")) for run in grid]
    stale = [
        (record.run, product, reason)
        for record in records
        for product in _products(record, grid, results)
        for reason in _staleness(record.run, product, results)
    ]
    if stale:
        reasons = [f"{run.path}: {reason}" for run, _, reason in stale]
        rules = dict.fromkeys(product.rule for _, product, _ in stale)
        raise UserError(
            f"stale runs, made by another configuration or other code "
            f"({_first(reasons, SHOWN_RUNS, '; ')}); allowed: records that match; run `snakemake --cores all "
            f"--forcerun {' '.join(rules)}` to make them again"
        )
    return records


def write_metrics(records: list[Record], results: Path, path: Path) -> None:
    """Write the rows of all succeeded runs and stages, one header above them."""
    with atomic_output(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as target:
        target.write(f"{METRIC_HEADER}\n")
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
        if header != METRIC_HEADER:
            raise UserError(
                f"{path} has the columns {header!r}; allowed: {METRIC_HEADER!r}; delete it and rerun"
            )
        yield from source


def _products(record: Record, grid: Grid, results: Path) -> Iterator[_Product]:
    """Yield the records of the jobs whose numbers enter the tables, in the order they are made."""
    run = record.run
    if run.imported is None:
        yield _Product("train", "training", record.content, grid.training_spec(run))
    else:
        yield _Product("import_logits", "import", record.content, grid.import_spec(run))
    fits = _read_json(results / "calibration" / run.path / "fits.json")
    yield _Product("calibrate", "calibration", fits, grid.calibration_spec(run))
    recovery = _read_json(results / "recovery" / run.path / "recovery.json")
    yield _Product("recover", "recovery", recovery, grid.recovery_spec(run))


def _staleness(run: Run, product: _Product, results: Path) -> Iterator[str]:
    """Yield each reason why a product does not belong to this configuration, this code or this data."""
    content = product.content
    settings = _differing(content.get("spec", {}), product.spec)
    if settings:
        yield f"its {product.noun} settings differ in {_first(settings, SHOWN_NAMES, ', ')}"
    recorded = content.get("provenance", {}).get("code", {})
    code = _differing(recorded, code_digests(f"workflow_scripts/{product.rule}.py"))
    if code:
        yield f"its {product.noun} code differs in {_first(code, SHOWN_NAMES, ', ')}"
    if product.rule == "train":
        checksum = _read_json(results / "data" / f"{run.dataset}.json")["checksum"]
        if content["data_checksum"] != checksum:
            yield "its data differ"


def _differing(recorded: Mapping[str, Any], current: Mapping[str, Any]) -> list[str]:
    """Return the sorted keys whose values differ, or that only one of both has."""
    everywhere = recorded.keys() & current.keys()
    changed = {key for key in everywhere if recorded[key] != current[key]}
    return sorted(changed | (recorded.keys() ^ current.keys()))


def _first(names: list[str], count: int, separator: str) -> str:
    """Return the first names in one line, and how many there are besides."""
    more = [f"and {len(names) - count} more"] if len(names) > count else []
    return separator.join([*names[:count], *more])


def _read_json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))
