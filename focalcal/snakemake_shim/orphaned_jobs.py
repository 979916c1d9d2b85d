"""SLURM jobs that outlived the Snakemake which submitted them.

A killed Snakemake (kill -9, a login node that went down) leaves its jobs in the queue. They run to their end,
but a Snakemake that starts meanwhile does not know about them and would run the same work again.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from focalcal.common.errors import UserError

JOB_NAME_PREFIX = "focalcal_"
"""The beginning of every job's name, set by `slurm-jobname-prefix` in profiles/slurm."""
LOGS = Path("logs/slurm")
"""Where SLURM jobs write, set by `slurm-logdir` there."""
SECONDS_TO_ANSWER = 120


def refuse(folder: Path) -> None:
    """Raise a UserError that says what to do, if an earlier Snakemake in `folder` left jobs in the queue.

    Without SLURM there are none. If SLURM does not answer, although jobs were submitted here, a line on
    standard error says so.
    """
    try:
        found = find(folder)
    except (OSError, subprocess.SubprocessError) as error:
        if (folder / LOGS).exists():
            reason = " ".join(str(getattr(error, "stderr", None) or error).split())
            sys.stderr.write(f"warning: jobs of an earlier Snakemake were not looked for: {reason}\n")
        return
    if found:
        tasks = ", ".join(f"{job_id} ({task})" for job_id, task in found.items())
        stop = f"scancel {' '.join(found)}"
        raise UserError(
            f"SLURM jobs of an earlier Snakemake in {str(folder)!r} are still in the queue: {tasks}; a "
            f"second one would run them twice; let them finish, or stop them with `{stop}` "
            f"(training continues from its checkpoint), and start again when `squeue --me` lists them no more"
        )


def find(folder: Path) -> dict[str, str]:
    """Return this user's SLURM jobs that a Snakemake in `folder` submitted: id -> task and state."""
    if shutil.which("squeue") is None:
        return {}
    columns = "%i\t%T\t%j\t%Z\t%k"
    command = ["squeue", "--me", "--noheader", f"--format={columns}"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS_TO_ANSWER)
    jobs = [line.split("\t", 4) for line in answer.stdout.splitlines()]
    return {
        job_id: f"{_task(comment)}, {state.lower()}"
        for job_id, state, name, work_folder, comment in jobs
        if name.startswith(JOB_NAME_PREFIX) and Path(work_folder).resolve() == folder.resolve()
    }


def _task(comment: str) -> str:
    """Return what a job does from the comment that the executor gives it: rule and wildcards."""
    rule, _, wildcards = comment.removeprefix("rule_").partition("_wildcards_")
    return f"{rule} {wildcards.replace('_', ' ')}".strip()
