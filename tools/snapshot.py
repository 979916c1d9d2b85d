"""Copy what matters of a finished results folder to a small folder that can be kept under version control.

It has the layout of a results folder, so `workflow_scripts.compare` accepts it.
"""

import argparse
import gzip
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from focalcal.common.errors import UserError, exit_code
from focalcal.common.io import read_json, write_json
from focalcal.reporting.products import Layout
from focalcal.reporting.records.costs import read_costs
from focalcal.reporting.records.measurements import LEADING, RUN, load_metrics
from focalcal.reporting.records.sources import read_runs
from focalcal.reporting.report.images import reduced_png
from focalcal.workflow.grid import build_grid
from focalcal.workflow.provenance import ROOT

RECORDS = ("runs.csv", "claims.csv", "claims.md")
OF_RUNS = ("runs", "debiased", "samples", "bound_hits")
"""Tables with one row per run, or more."""
LEFT_OUT = "scores"
"""A table of what metrics.csv.gz has."""
LOG_LOSS = "log_loss.csv.gz"
FIGURES = ("forest", "calibration_error", "critical_difference")
DATASET_MODEL_FIGURES = ("reliability", "temperature", "relation", "training")
SUMMARY = (
    *("status", "message", "seed", "device", "threads", "epochs", "kept_epoch", "parameters"),
    *("images_per_second", "wall_seconds", "final", "data_checksum"),
)
ORIGIN = ("git_commit", "python", "packages", "code")
"""What a run's summary keeps of its provenance: not the machine it ran on."""


def main(argv: Sequence[str] | None = None) -> None:
    """Write the snapshot."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=Path, help="a results folder of a finished workflow")
    parser.add_argument("target", type=Path, help="folder to make; it must not exist")
    parser.add_argument("--without-runs", action="store_true", help="leave out what is about single runs")
    arguments = parser.parse_args(argv)
    write_snapshot(arguments.results, arguments.target, runs=not arguments.without_runs)


def write_snapshot(results: Path, target: Path, *, runs: bool = True) -> None:
    """Copy configuration, scores, claims, tables, main figures, run summaries and costs to a new folder.

    Without `runs`, all that is kept of single runs is their log-loss: a study of a thousand has too many.
    Raise UserError if the target exists or a product is missing.
    """
    if target.exists():
        raise UserError(f"{target} exists; remove it, or name a folder that does not exist")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as name:
        partial = Path(name) / target.name
        try:
            _fill(partial, results, runs=runs)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise UserError(
                f"{error.filename} is missing; finish the workflow first: snakemake --cores all"
            ) from None
        partial.rename(target)


def _fill(target: Path, results: Path, *, runs: bool) -> None:
    config = read_json(results / "config.json")
    grid = build_grid(config, ROOT)
    layout = Layout(grid)
    # Figures of one dataset and model are kept of those that were trained.
    shown = {"", *(f"{run.dataset}/{run.model}" for run in grid if runs and run.imported is None)}
    tables = layout.products("table", stage="reporting")
    names = ["config.json", *(f"tables/{name}" for name in RECORDS)]
    names += [
        f"tables/{made.name}.{suffix}" for made in tables if made.name != LEFT_OUT for suffix in ("csv", "md")
    ]
    for name in names:
        if runs or Path(name).stem not in OF_RUNS:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(results / name, target / name)
    for made in layout.products("figure"):
        stems = layout.stems(made) if made.name in (*FIGURES, *DATASET_MODEL_FIGURES) else {}
        for stem in (stem for where, stem in stems.items() if where in shown):
            path = target / f"{stem}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(reduced_png(results / f"{stem}.png"))
    metrics = results / "tables" / "metrics.csv"
    if runs:
        _write_summaries(target, results)
        packed = gzip.compress(metrics.read_bytes(), mtime=0)
        (target / "tables" / f"{metrics.name}.gz").write_bytes(packed)
    else:
        _write_log_loss(target / LOG_LOSS, load_metrics(metrics))
    costs = pd.DataFrame(read_costs(results / "benchmarks")).round({"seconds": 2})
    costs.to_csv(target / "costs.csv", index=False, lineterminator="\n")


def _write_log_loss(path: Path, metrics: pd.DataFrame) -> None:
    """Write the test log-loss of each run by each calibrator that was fitted by log-loss or needs no fit."""
    rows = metrics[(metrics["split"] == "test") & (metrics["metric"] == LEADING)]
    rows = rows[rows["criterion"].isin(["", LEADING])].rename(columns={"value": LEADING})
    rows.to_csv(
        path,
        columns=[*RUN, "method", LEADING],
        index=False,
        float_format="%.6g",
        lineterminator="\n",
        compression={"method": "gzip", "mtime": 0},
    )


def _write_summaries(target: Path, results: Path) -> None:
    for run in read_runs(results / "tables" / "runs.csv"):
        record = read_json(results / "runs" / run["path"] / "run.json")
        summary = {key: record[key] for key in SUMMARY if key in record}
        summary["provenance"] = {
            key: record["provenance"][key] for key in ORIGIN if key in record["provenance"]
        }
        write_json(target / "runs" / run["path"] / "run.json", summary)


if __name__ == "__main__":
    sys.exit(exit_code(main))
