"""What a user has to know when jobs failed for good: which, where their logs are, and what to do."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

ADVICE = (
    "Read the ends of these logs. After a repair start the same command again: finished jobs are not "
    "repeated, and training goes on from its checkpoint. To go on without a run, take it out of 'runs' in "
    "the configuration."
)
CLUSTER_ADVICE = "Of a job that SLURM killed, see also logs/slurm/."


def report(failed: Iterable[Any], *, on_cluster: bool) -> str:
    """Return a text that names each of Snakemake's failed jobs, group jobs too, with its log, and what to do.

    Of a group only the jobs that had started are named: the last of them is the one that failed.
    """
    lines = sorted(line for job in failed for line in _lines(job))
    if not lines:
        return ""
    advice = [ADVICE, CLUSTER_ADVICE] if on_cluster else [ADVICE]
    return "\n".join([f"Failed for good: {len(lines)}", *lines, *advice])


def _lines(job: Any) -> list[str]:
    members = list(job.jobs) if job.is_group() else [job]
    started = [member for member in members if any(Path(log).exists() for log in member.log)]
    return [_line(member) for member in started or members]


def _line(job: Any) -> str:
    wildcards = ", ".join(f"{name}={value}" for name, value in job.wildcards_dict.items())
    logs = " ".join(map(str, job.log))
    return f"  {job.rule.name} {wildcards}: {logs or 'no log'}".replace(" :", ":")
