"""SLURM jobs that outlived the Snakemake which submitted them.

A killed Snakemake (kill -9, a login node that went down) leaves its jobs in the queue. They run to their end,
but a Snakemake that starts meanwhile does not know about them and would submit the same work again.
"""

import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from focalcal.common.errors import UserError

JOB_NAME_PREFIX = "focalcal_"
"""The beginning of every job's name, set by `slurm-jobname-prefix` in profiles/slurm."""

SECONDS_TO_ANSWER = 120

COMMAND = "python -m workflow_scripts.orphaned_jobs"


@dataclass(frozen=True)
class OrphanedJob:
    """One SLURM job in the queue: its id, its state in SLURM's words, and what it does."""

    job_id: str
    state: str
    task: str

    def __str__(self) -> str:
        return f"{self.job_id} ({self.task}, {self.state.lower()})"


def find(folder: Path) -> list[OrphanedJob]:
    """Return this user's SLURM jobs, waiting or running, that a Snakemake in `folder` submitted.

    Without SLURM there are none. Raise a UserError if SLURM does not answer.
    """
    if shutil.which("squeue") is None:
        return []
    columns = "%i\t%T\t%j\t%Z\t%k"
    lines = _slurm("squeue", "--me", "--noheader", f"--format={columns}").splitlines()
    jobs = [line.split("\t", 4) for line in lines]
    return [
        OrphanedJob(job_id, state, _task(comment))
        for job_id, state, name, work_folder, comment in jobs
        if name.startswith(JOB_NAME_PREFIX) and Path(work_folder).resolve() == folder.resolve()
    ]


def refuse(folder: Path) -> None:
    """Raise a UserError that says what to do, if an earlier Snakemake in `folder` left jobs in the queue."""
    if found := find(folder):
        # The command runs in the clone, which need not be the folder.
        where = f"--directory {shlex.quote(str(folder))}"
        raise UserError(
            f"SLURM jobs of an earlier Snakemake in {str(folder)!r} are still in the queue: "
            f"{', '.join(map(str, found))}; a second Snakemake would run them twice; in the clone, let them "
            f"finish with `{COMMAND} --wait {where}`, or stop them with `{COMMAND} --cancel {where}` "
            f"(training continues from its checkpoint), then start Snakemake again"
        )


def cancel(orphans: Sequence[OrphanedJob]) -> None:
    """Cancel SLURM jobs; trainings among them write a checkpoint first."""
    if orphans:
        _slurm("scancel", *(orphan.job_id for orphan in orphans))


def wait(folder: Path, seconds: float = 15.0) -> None:
    """Return when no job of `folder` is left in the queue, polling every `seconds`."""
    while find(folder):
        time.sleep(seconds)


def _task(comment: str) -> str:
    """Return what a job does from the comment that the executor gives it: rule and wildcards."""
    rule, _, wildcards = comment.removeprefix("rule_").partition("_wildcards_")
    return f"{rule} {wildcards.replace('_', ' ')}".strip()


def _slurm(*command: str) -> str:
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=SECONDS_TO_ANSWER
        )
    except subprocess.TimeoutExpired:
        raise UserError(
            f"'{command[0]}' did not answer in {SECONDS_TO_ANSWER} s; try again when SLURM does"
        ) from None
    if result.returncode:
        raise UserError(f"'{command[0]}' failed: {result.stderr.strip()}; try again when SLURM answers")
    return result.stdout
