"""A compact copy of a finished results folder, small enough to be kept under version control.

It has the layout of a results folder, so `workflow_scripts.compare` accepts it.
"""

import shutil
import tempfile
from pathlib import Path

import pandas as pd

from focalcal.common.errors import UserError
from focalcal.common.io import read_json, write_json
from focalcal.reporting.products import PRODUCTS
from focalcal.reporting.records.costs import read_costs
from focalcal.reporting.records.sources import read_runs
from focalcal.reporting.report.images import reduced_png
from focalcal.workflow.grid import build_grid
from focalcal.workflow.provenance import ROOT

RECORDS = ("metrics.csv", "runs.csv", "claims.csv", "claims.md")
TABLES = tuple(made.name for made in PRODUCTS if made.kind == "table" and made.stage == "reporting")
FIGURES = ("forest", "calibration_error")
DATASET_MODEL_FIGURES = ("reliability", "temperature", "relation", "training")
SUMMARY = (
    *("status", "message", "seed", "device", "threads", "epochs", "parameters", "images_per_second"),
    *("wall_seconds", "final", "data_checksum"),
)
ORIGIN = ("git_commit", "python", "packages", "code")
"""What a run's summary keeps of its provenance: not the machine it ran on."""


def write_snapshot(results: Path, target: Path) -> None:
    """Copy configuration, scores, claims, tables, main figures, run summaries and costs to a new folder.

    Raise UserError if the target exists or a product is missing.
    """
    if target.exists():
        raise UserError(f"{target} exists; remove it, or name a folder that does not exist")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as name:
        partial = Path(name) / target.name
        try:
            _fill(partial, results)
        except FileNotFoundError as error:
            raise UserError(
                f"{error.filename} is missing; finish the workflow first: snakemake --cores all"
            ) from None
        partial.rename(target)


def _fill(target: Path, results: Path) -> None:
    runs = build_grid(read_json(results / "config.json"), ROOT)
    trained = sorted({f"{run.dataset}/{run.model}" for run in runs if run.imported is None})
    names = ["config.json", *(f"tables/{name}" for name in RECORDS)]
    names += [f"tables/{name}.{suffix}" for name in TABLES for suffix in ("csv", "md")]
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(results / name, target / name)
    figures = [*FIGURES, *(f"{name}/{pair}" for name in DATASET_MODEL_FIGURES for pair in trained)]
    for figure in figures:
        path = target / "figures" / f"{figure}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(reduced_png(results / "figures" / f"{figure}.png"))
    for run in read_runs(results / "tables" / "runs.csv"):
        record = read_json(results / "runs" / run["path"] / "run.json")
        summary = {key: record[key] for key in SUMMARY if key in record}
        summary["provenance"] = {
            key: record["provenance"][key] for key in ORIGIN if key in record["provenance"]
        }
        write_json(target / "runs" / run["path"] / "run.json", summary)
    costs = pd.DataFrame(read_costs(results / "benchmarks")).round({"seconds": 2})
    costs.to_csv(target / "costs.csv", index=False, lineterminator="\n")
