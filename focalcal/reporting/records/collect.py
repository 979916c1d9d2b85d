"""Four tidy tables from all runs: runs, metrics, comparisons and effects.

Runs that do not belong to this configuration or code are refused.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from focalcal.calibration.catalogue import AUTO
from focalcal.calibration.files.tidy import COLUMNS
from focalcal.calibration.sizes import read_size_scores
from focalcal.common.checksums import outdated
from focalcal.common.csv_rows import write_rows
from focalcal.common.errors import UserError
from focalcal.common.io import atomic_output, read_json, refusing_damage, write_text
from focalcal.config.accepted import Accepted
from focalcal.config.grid import Grid, Run
from focalcal.reporting.products import INPUTS
from focalcal.reporting.records import stale
from focalcal.reporting.records.measurements import COMPARISON_COLUMNS, LEADING, PAIR
from focalcal.reporting.statistics.by_size import SizedRun, comparisons_by_size
from focalcal.reporting.statistics.effects import effects_of, run_origin
from focalcal.training.appearance import loss_family

METRIC_HEADER = ",".join(COLUMNS)
# The first four columns of the metrics identify a run.
RUN_COLUMNS = (
    *COLUMNS[:4],
    *("epochs", "status", "device", "wall_seconds", "git_commit", "slurm_job_id"),
    *("imported", "published", "train_error", "bins", "recovery_bins", "temperature_grid", "gamma_grid"),
    "accepted",
)
"""What a run is, how it ended and where it ran; what decides whether a paper's statement is about it; which
changes of code or packages since then were accepted, and who did."""
CALIBRATION, RECOVERY = "calibration/{run.path}/metrics.csv", "recovery/{run.dataset}/{run.model}/metrics.csv"
"""The metrics of one run, and of all runs of one dataset and model, below the results folder."""
FILES = (
    *(stale.RECORDS[rule] for rule in ("train", "calibrate", "recover")),
    *(CALIBRATION, RECOVERY),
)
"""What the tables are made from, below the results folder."""
WHOLE_COLUMNS = (*PAIR, "value", "against_value", "difference", "error", "z")
"""What a run's diagnostics say of comparisons after fits to the whole validation split."""
SIZES = tuple(f"calibration/{{run.path}}/sizes.{end}" for end in ("json", "npz"))
"""What they are made from besides, if scores by number of validation samples are configured."""
Records = dict[Run, dict[str, Any]]
"""Each run of the grid with the content of its run.json."""


def read_records(grid: Grid, results: Path) -> Records:
    """Return each run's record in the grid's order; a UserError names the runs that are stale."""
    stale.refuse(grid, results)
    records = {run: read_json(results / stale.RECORDS["train"].format(run=run)) for run in grid}
    files = (*FILES, *(SIZES if grid.sizes_methods else ()))
    if reasons := outdated(results / file.format(run=run) for run in grid for file in files):
        raise UserError(stale.first_of(reasons, "; "))
    return records


def write_metrics(records: Records, results: Path, path: Path) -> None:
    """Write the rows of all succeeded runs and stages, one header above them."""
    recovered: dict[str, list[str]] = {}
    for file in dict.fromkeys(RECOVERY.format(run=run) for run in records):
        for line in _metric_lines(results / file):
            dataset, model, loss, seed, _ = line.split(",", 4)
            recovered.setdefault(f"{dataset}/{model}/{loss}/seed{seed}", []).append(line)
    with atomic_output(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as target:
        target.write(f"{METRIC_HEADER}\n")
        for run, content in records.items():
            if content["status"] == "ok":
                target.writelines(_metric_lines(results / CALIBRATION.format(run=run)))
                target.writelines(recovered.get(run.path, ()))


def write_runs(grid: Grid, records: Records, reviewed: Accepted, path: Path) -> None:
    """Write one row per run, failed ones included: what it is, how it ended, where it ran."""
    rows = []
    for run, content in records.items():
        calibration, recovery = grid.calibration_spec(run), grid.recovery_spec(run.dataset, run.model)
        temperatures = [calibration["temperatures"][name] for name in ("start", "stop", "step")]
        found = {
            **content["provenance"],
            **content,
            **vars(run),
            "epochs": content["spec"].get("recipe", {}).get("epochs"),
            "imported": "yes" if run.imported else "",
            "train_error": content.get("final", {}).get("train_error"),
            "bins": calibration["bins"],
            "recovery_bins": recovery["bins"],
            "temperature_grid": " ".join(f"{number:g}" for number in temperatures),
            "gamma_grid": " ".join(f"{number:g}" for number in calibration["gammas"]),
            "accepted": reviewed.of_run(run.path, f"{run.dataset}/{run.model}"),
        }
        rows.append({name: found.get(name) for name in RUN_COLUMNS})
    write_rows(path, rows, RUN_COLUMNS)


def read_sized_runs(grid: Grid, records: Records, results: Path) -> list[SizedRun]:
    """Return the scores of each succeeded run by number of validation samples, if they are configured."""
    succeeded = [run for run, content in records.items() if content["status"] == "ok" and grid.sizes_methods]
    return [
        SizedRun(
            {**run.spec, "seed": str(run.seed)},
            run_origin({**vars(run), "simulated": grid.simulated(run)}),
            loss_family(run.loss),
            read_size_scores(*(results / file.format(run=run) for file in SIZES)),
        )
        for run in succeeded
    ]


def read_choices(grid: Grid, records: Records, results: Path) -> dict[Run, str]:
    """Return the method that was recommended for each succeeded run, if recommendations are configured."""
    succeeded = [run for run, content in records.items() if content["status"] == "ok"]
    if not grid.report_settings("recommend")["recommend"]:
        return {}
    files = {run: results / stale.RECORDS["recommend"].format(run=run) for run in succeeded}
    return {run: read_json(file)["recommendation"]["method"] for run, file in files.items()}


def write_comparisons(
    records: Records,
    results: Path,
    path: Path,
    sized: Sequence[SizedRun] = (),
    choices: Mapping[Run, str] | None = None,
) -> pd.DataFrame:
    """Write each succeeded run's comparisons of calibrators; return those on the whole validation split.

    `choices` are the recommended methods of runs, whose comparisons are also those of `AUTO`.
    """
    choices = choices or {}
    rows = []
    for run, content in records.items():
        if content["status"] == "ok":
            found = read_json(results / diagnostics_file(run.path))["comparisons"]
            found += [*_of_choice(found, choices.get(run, ""))]
            identity = {**run.spec, "seed": str(run.seed)}
            rows += [identity | {name: row[name] for name in WHOLE_COLUMNS} for row in found]
    frames = [pd.DataFrame(found, columns=COMPARISON_COLUMNS) for found in (rows, comparisons_by_size(sized))]
    together = pd.concat([frame for frame in frames if len(frame)] or frames[:1])
    write_text(path, together.to_csv(index=False, lineterminator="\n", float_format="%.7g"))
    return frames[0]


def _of_choice(rows: Sequence[dict[str, Any]], method: str) -> Iterator[dict[str, Any]]:
    """Yield the comparisons by log-loss of a method as those of `AUTO`; it does not differ from itself."""
    same = dict.fromkeys(("difference", "error", "z"), 0.0)
    itself: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["criterion"] == LEADING and row["method"] == method:
            yield row | {"method": AUTO}
        elif row["criterion"] == LEADING and row["against"] == method:
            itself[row["metric"]] = row | same | {"method": AUTO, "value": row["against_value"]}
    yield from itself.values()


def write_effects(comparisons: pd.DataFrame, grid: Grid, path: Path, sized: Sequence[SizedRun] = ()) -> None:
    """Write the effects of all comparisons, at the level of the configuration."""
    runs = [{**vars(run), "seed": str(run.seed), "simulated": grid.simulated(run)} for run in grid]
    effects = effects_of(comparisons, runs, grid.report_settings("confidence")["confidence"], sized)
    write_text(path, effects.to_csv(index=False, lineterminator="\n"))


def diagnostics_file(run: str) -> str:
    """Return the diagnostics of the run with this path, relative to the results folder."""
    return INPUTS["diagnostics"].removeprefix("results/").format(run=run)


def _metric_lines(path: Path) -> list[str]:
    """Return the lines of a stage's table below its header, which must be the one all stages share."""
    with refusing_damage(path), path.open(encoding="utf-8") as source:
        header, *lines = [*source] or [""]
        if header != f"{METRIC_HEADER}\n":
            raise ValueError(f"its columns are {header.rstrip()!r} instead of {METRIC_HEADER!r}")
        if lines and not lines[-1].endswith("\n"):
            raise ValueError("its last row is cut")
        if doubled := next((line for line, count in Counter(lines).items() if count > 1), None):
            raise ValueError(f"it has the row {doubled.rstrip()!r} more than once")
    return lines
