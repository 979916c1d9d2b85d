"""Copy what the pages of findings read of a finished results folder to a folder under version control."""

import argparse
import gzip
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from focalcal.common.errors import UserError, exit_code
from focalcal.common.io import read_json
from focalcal.config.grid import build_grid
from focalcal.config.provenance import ROOT
from focalcal.reporting.products import Layout
from focalcal.reporting.records.costs import read_costs
from focalcal.reporting.records.measurements import LEADING, RUN, load_metrics
from focalcal.reporting.records.sources import read_runs
from focalcal.reporting.report.embedded import reduced_png

TABLES = (
    *("arena", "arena_over_datasets", "calarena", "calibrator_map", "fts_by_network", "held_out_advice"),
    *("m20_ece", "m20_error", "optimism", "overview", "recommended", "two_temperatures", "when_fts_pays"),
)
FIGURES = (
    "calibrator_map",
    "fts_by_size",
    "fts_by_temperature",
    "mean_ranks",
    "two_temperatures",
)
DATASET_MODEL_FIGURES = ("relation", "training")
LOG_LOSS = "log_loss.csv.gz"
RUN_FACTS = (
    *("status", "device", "threads", "epochs", "kept_epoch", "parameters"),
    *("images_per_second", "wall_seconds", "data_checksum"),
)


def main(argv: Sequence[str] | None = None) -> None:
    """Write the snapshot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, help="a results folder of a finished workflow")
    parser.add_argument("target", type=Path, help="folder to make; it must not exist")
    parser.add_argument("--without-runs", action="store_true", help="leave out what is about single runs")
    arguments = parser.parse_args(argv)
    write_snapshot(arguments.results, arguments.target, runs=not arguments.without_runs)


def write_snapshot(results: Path, target: Path, *, runs: bool = True) -> None:
    """Copy configuration, scores, tables and figures of pages, facts of runs and costs to a new folder.

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


def run_facts(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of a run's record, with a digest of all code behind it, and not its machine."""
    provenance = record["provenance"]
    code = hashlib.sha256(json.dumps(provenance["code"], sort_keys=True).encode())
    return {
        **{name: record.get(name) for name in RUN_FACTS},
        "git_commit": provenance.get("git_commit"),
        "python": provenance["python"],
        "packages": " ".join(f"{name}=={version}" for name, version in provenance["packages"].items()),
        "code": code.hexdigest()[:16],
    }


def _fill(target: Path, results: Path, *, runs: bool) -> None:
    grid = build_grid(read_json(results / "config.json"), ROOT)
    layout = Layout(grid)
    tables = [made.name for made in layout.products("table", stage="reporting") if made.name in TABLES]
    (target / "tables").mkdir(parents=True)
    for name in ("config.json", *(f"tables/{table}.csv" for table in [*tables, "claims"])):
        shutil.copyfile(results / name, target / name)
    # Figures of one dataset and model are kept of those that were trained.
    shown = {"", *(f"{run.dataset}/{run.model}" for run in grid if runs and run.imported is None)}
    for made in layout.products("figure"):
        stems = layout.stems(made) if made.name in (*FIGURES, *DATASET_MODEL_FIGURES) else {}
        for stem in (stem for where, stem in stems.items() if where in shown):
            path = target / f"{stem}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(reduced_png(results / f"{stem}.png"))
    metrics = results / "tables" / "metrics.csv"
    if runs:
        _write_table(target / "runs.csv", _run_rows(results))
        packed = gzip.compress(metrics.read_bytes(), mtime=0)
        (target / "tables" / f"{metrics.name}.gz").write_bytes(packed)
    else:
        _write_log_loss(target / LOG_LOSS, load_metrics(metrics))
    costs = pd.DataFrame(read_costs(results / "benchmarks"))
    _write_table(target / "costs.csv", costs.round({"seconds": 2}))


def _run_rows(results: Path) -> pd.DataFrame:
    """Return one row per run."""
    rows = [
        {name: run[name] for name in RUN} | run_facts(read_json(results / "runs" / run["path"] / "run.json"))
        for run in read_runs(results / "tables" / "runs.csv")
    ]
    whole = ("threads", "epochs", "kept_epoch", "parameters")
    return pd.DataFrame(rows).astype(dict.fromkeys(whole, "Int64"))


def _write_table(path: Path, rows: pd.DataFrame, **options: Any) -> None:
    rows.to_csv(path, index=False, lineterminator="\n", **options)


def _write_log_loss(path: Path, metrics: pd.DataFrame) -> None:
    """Write the test log-loss of each run by each calibrator that was fitted by log-loss or needs no fit."""
    rows = metrics[(metrics["split"] == "test") & (metrics["metric"] == LEADING)]
    rows = rows[rows["criterion"].isin(["", LEADING])].rename(columns={"value": LEADING})
    packed = {"method": "gzip", "mtime": 0}
    _write_table(path, rows[[*RUN, "method", LEADING]], float_format="%.6g", compression=packed)


if __name__ == "__main__":
    sys.exit(exit_code(main))
