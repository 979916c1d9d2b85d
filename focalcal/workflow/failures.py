"""What a user has to know when jobs have failed for good: which ones, why, their logs, what to do."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from focalcal.workflow.job_logs import last_line

ADVICE = (
    "Read the last lines of these logs. After a repair start the same command again: finished jobs are not "
    "repeated, and training continues from its checkpoint. To continue without a run, remove it from 'runs' "
    "in the configuration."
)
MOST_JOBS = 20
"""As many failed jobs are named."""
CLUSTER_ADVICE = (
    "A job whose log is missing or empty was refused or killed by SLURM: the reason stands after 'failed:' "
    "above, its output below logs/slurm/. For a refused group, add --verbose and try the sbatch command that "
    "it prints."
)


def report(failed: Iterable[Any], *, on_cluster: bool) -> str:
    """Return a text that names Snakemake's failed jobs, group jobs too, with log and cause, and what to do.

    For a group only the jobs that had started are named: the last of them is the one that failed.
    """
    lines = sorted(line for job in failed for line in _job_lines(job))
    if not lines:
        return ""
    advice = [ADVICE, CLUSTER_ADVICE] if on_cluster else [ADVICE]
    more = [f"  and {len(lines) - MOST_JOBS} more"] if len(lines) > MOST_JOBS else []
    return "\n".join([f"Failed for good: {len(lines)}", *lines[:MOST_JOBS], *more, *advice])


def _job_lines(job: Any) -> list[str]:
    members = list(job.jobs) if job.is_group() else [job]
    started = [member for member in members if any(Path(log).exists() for log in member.log)]
    return [_job_line(member) for member in started or members]


def _job_line(job: Any) -> str:
    wildcards = ", ".join(f"{name}={value}" for name, value in job.wildcards_dict.items())
    logs = " ".join(map(str, job.log))
    line = f"  {job.rule.name} {wildcards}: {logs or 'no log'}".replace(" :", ":")
    return "\n    ".join(filter(None, [line, *(last_line(Path(log)) for log in job.log)]))
