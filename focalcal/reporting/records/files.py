"""The files of single runs that reporting reads: status, diagnostics, fits and histories."""

import csv
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

SUCCEEDED = "ok"


def read_runs(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Return the rows of runs.csv, each with `path`, the run's folder below a stage's."""
    with Path(path).open(encoding="utf-8", newline="") as source:
        rows = list(csv.DictReader(source))
    return [{**row, "path": run_path(row)} for row in rows]


def run_path(row: dict[str, str]) -> str:
    """Return a run's folder, relative to a stage's folder."""
    return f"{row['dataset']}/{row['model']}/{row['loss']}/seed{row['seed']}"


def succeeded(runs: Iterable[dict[str, str]], place: str | None = None) -> list[dict[str, str]]:
    """Return the runs whose numbers count, those of one place (`dataset/model`) where one is given."""
    return [
        run
        for run in runs
        if run["status"] == SUCCEEDED and (place is None or f"{run['dataset']}/{run['model']}" == place)
    ]


def read_diagnostics(
    results: Path, runs: Iterable[dict[str, str]], place: str | None = None
) -> list[dict[str, Any]]:
    """Return the diagnostics of the runs that succeeded."""
    return [_read_json(results / "diagnostics" / f"{run['path']}.json") for run in succeeded(runs, place)]


def iterate_surfaces(
    results: Path, runs: Iterable[dict[str, str]], place: str | None = None
) -> Iterator[tuple[dict[str, str], dict[str, np.ndarray]]]:
    """Yield each succeeded run with its search surfaces."""
    for run in succeeded(runs, place):
        with np.load(results / "calibration" / run["path"] / "surfaces.npz", allow_pickle=False) as archive:
            surfaces = {name: archive[name] for name in archive.files}
        yield run, surfaces


def read_fits(results: Path, run: dict[str, str]) -> list[dict[str, Any]]:
    """Return what was fitted to one run."""
    return _read_json(results / "calibration" / run["path"] / "fits.json")["fits"]


def iterate_histories(
    results: Path, runs: Iterable[dict[str, str]], place: str | None = None
) -> Iterator[tuple[dict[str, str], pd.DataFrame]]:
    """Yield each succeeded run that was trained here with its history."""
    for run in succeeded(runs, place):
        path = results / "runs" / run["path"] / "history.csv"
        if path.is_file():
            yield run, pd.read_csv(path)


def read_record(results: Path, run: dict[str, str]) -> dict[str, Any]:
    """Return a run's record."""
    return _read_json(results / "runs" / run["path"] / "run.json")


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
