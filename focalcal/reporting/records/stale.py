"""Which runs have records of another configuration, other code or other data."""

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from focalcal.calibration.catalogue import declaring_files
from focalcal.common.errors import UserError
from focalcal.common.io import read_json
from focalcal.config import accepted
from focalcal.config.grid import Grid, Run
from focalcal.config.provenance import code_digests
from focalcal.training.catalogue import loss_file
from focalcal.training.models.catalogue import model_file

RECORDS = {
    "fetch_data": "data/{run.dataset}.json",
    "train": "runs/{run.path}/run.json",
    "import_logits": "runs/{run.path}/run.json",
    "calibrate": "calibration/{run.path}/fits.json",
    "validation_sizes": "calibration/{run.path}/sizes.json",
    "recommend": "recommended/{run.path}.json",
    "recover": "recovery/{run.dataset}/{run.model}/recovery.json",
}
"""The record that each rule writes for a run, below the results folder."""
MOST_SHOWN = 5


class _Job(NamedTuple):
    """A job whose numbers enter the tables, and what its record should say."""

    run: Run
    rule: str
    noun: str
    spec: dict[str, Any]
    modules: Sequence[str] = ()
    """Modules that the job loads by name."""

    @property
    def subject(self) -> str:
        """Return what it is about: a run, or a dataset and model."""
        return f"{self.run.dataset}/{self.run.model}" if self.rule == "recover" else self.run.path

    def record(self, results: Path) -> Path:
        """Return the file that holds its record."""
        return results / RECORDS[self.rule].format(run=self.run)


def refuse(grid: Grid, results: Path, rules: Container[str] = RECORDS) -> list[Path]:
    """Return the records of these rules' jobs, made or not; raise a UserError that names stale ones."""
    all_jobs = [job for job in _jobs(grid) if job.rule in rules]
    jobs = [job for job in all_jobs if job.record(results).exists()]
    reviewed = accepted.read(results)
    stale = [(job, *found) for job in jobs for found in _staleness(job, results, reviewed)]
    if stale:
        reasons = [f"{job.subject}: {reason}" for job, _, reason in stale]
        again = _to_make_again(stale, Counter(job.rule for job in jobs), results)
        by_code = any(" code differs in " in reason for reason in reasons)
        accept = "; or see `focalcal accept`, if the change of code changes no number" if by_code else ""
        raise UserError(
            f"stale runs, made by another configuration or other code ({first_of(reasons, '; ')}); allowed: "
            f"records that match; add `--forcerun {' '.join(again)}` to the same command to make them again"
            f"{accept}"
        )
    return [job.record(results) for job in all_jobs]


def differing(recorded: Mapping[str, Any], current: Mapping[str, Any]) -> list[str]:
    """Return the sorted keys whose values differ, or that only one of both has."""
    shared = recorded.keys() & current.keys()
    return sorted((recorded.keys() ^ current.keys()) | {k for k in shared if recorded[k] != current[k]})


def first_of(names: Sequence[str], separator: str) -> str:
    """Return the first names in one line, and how many there are besides."""
    more = [f"and {len(names) - MOST_SHOWN} more"] if len(names) > MOST_SHOWN else []
    return separator.join([*names[:MOST_SHOWN], *more])


def _jobs(grid: Grid) -> Iterator[_Job]:
    """Yield the jobs of each run in the order they are done, then the recovery of each dataset and model."""
    for run in grid:
        if run.imported is None:
            modules = (loss_file(run.loss), model_file(run.model))
            yield _Job(run, "train", "training", grid.training_spec(run), modules)
        else:
            yield _Job(run, "import_logits", "import", grid.import_spec(run))
        spec = grid.calibration_spec(run)
        yield _Job(run, "calibrate", "calibration", spec, declaring_files(spec["methods"]))
        if grid.report_settings("recommend")["recommend"]:
            spec = grid.recommendation_spec(run)
            yield _Job(run, "recommend", "recommendation", spec, declaring_files(spec["methods"]))
        if grid.sizes_methods:
            spec = grid.sizes_spec(run)
            yield _Job(run, "validation_sizes", "validation sizes", spec, declaring_files(spec["methods"]))
    for dataset, model in dict.fromkeys((run.dataset, run.model) for run in grid):
        first = grid.runs_of(dataset, model)[0]
        yield _Job(first, "recover", "recovery", grid.recovery_spec(dataset, model))


def _staleness(job: _Job, results: Path, reviewed: accepted.Accepted) -> Iterator[tuple[Sequence[str], str]]:
    """Yield the rules to run again and the reason: other settings, other code, other data."""
    content = read_json(job.record(results))
    settings = differing(content.get("spec", {}), job.spec)
    if settings:
        yield [job.rule], f"its {job.noun} settings differ in {first_of(settings, ', ')}"
    recorded = content.get("provenance", {}).get("code", {})
    current = code_digests(f"workflow_scripts/{job.rule}.py", *job.modules)
    if code := differing(*(reviewed.digests(job.rule, digests) for digests in (recorded, current))):
        yield [job.rule], f"its {job.noun} code differs in {first_of(code, ', ')}"
    data = results / RECORDS["fetch_data"].format(run=job.run)
    if job.rule == "train" and data.exists() and content["data_checksum"] != read_json(data)["checksum"]:
        # Training again would not help if the data are damaged.
        yield ["fetch_data", job.rule], "its data differ"


def _to_make_again(
    stale: Sequence[tuple[_Job, Sequence[str], str]], jobs: Mapping[str, int], results: Path
) -> list[str]:
    """Return what to make again: a rule if all of its jobs are stale, else the records of those that are."""
    files: dict[str, dict[str, None]] = {}
    for job, rules, _ in stale:
        for rule in rules:
            files.setdefault(rule, {})[str(results / RECORDS[rule].format(run=job.run))] = None
    return [
        name for rule, found in files.items() for name in ([rule] if len(found) == jobs.get(rule) else found)
    ]
