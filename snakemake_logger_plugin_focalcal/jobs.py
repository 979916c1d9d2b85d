"""The jobs of one invocation: how many are done and run, how long the rest may take, which have failed."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

ADVICE = (
    "Read the last lines of these logs. After a repair start the same command again: finished jobs are not "
    "repeated, and training continues from its checkpoint. To continue without a run, remove it from 'runs' "
    "in the configuration."
)
CLUSTER_ADVICE = (
    "A job whose log is missing or empty was refused or killed by SLURM: the reason stands after 'failed:' "
    "above, its output below logs/slurm/. For a refused group, add --verbose and try the sbatch command that "
    "it prints."
)
MOST_FAILED = 20
"""As many failed jobs are named."""
TAIL_BYTES = 4096
"""As much of the end of a log as is read: more than the longest line that matters."""


@dataclass(frozen=True)
class Job:
    """One job that has started or, on a cluster, was submitted."""

    rule: str
    logs: tuple[Path, ...]
    wildcards: Mapping[str, str]
    local: bool
    """Whether it runs on this machine."""

    @property
    def text(self) -> str:
        """Return the path of its log below logs/, which tells rule and run, and what the log says last."""
        if not self.logs:
            return self.rule
        name = "/".join(self.logs[0].with_suffix("").parts[1:])
        return f"{name}  {last_line(self.logs[0])}".rstrip()

    @property
    def failure(self) -> str:
        """Return its rule, wildcards and logs, and below them the last line of each log."""
        wildcards = ", ".join(f"{name}={value}" for name, value in self.wildcards.items())
        head = f"  {self.rule} {wildcards}: {' '.join(map(str, self.logs)) or 'no log'}".replace(" :", ":")
        return "\n    ".join(filter(None, [head, *map(last_line, self.logs)]))


class Jobs:
    """What is known of all jobs."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begin = clock()
        self.planned: Counter[str] = Counter()
        self.finished: Counter[str] = Counter()
        self.running: dict[int, Job] = {}
        self.failed: dict[int, Job] = {}
        self._starts: dict[int, float] = {}
        self._seconds: Counter[str] = Counter()

    def plan(self, counts: Mapping[str, int]) -> None:
        """Take the number of jobs of each rule."""
        self.planned = Counter({rule: count for rule, count in counts.items() if rule != "total"})

    def start(self, number: int, job: Job) -> None:
        """Take note that a job has started, perhaps again."""
        self.failed.pop(number, None)
        self.running[number], self._starts[number] = job, self._clock()

    def end(self, number: int, *, succeeded: bool) -> None:
        """Take note that a job has ended; one that failed may start again."""
        job = self.running.pop(number, None)
        if job is None:
            return
        if succeeded:
            self.finished[job.rule] += 1
            self._seconds[job.rule] += self._clock() - self._starts[number]
        else:
            self.failed[number] = job

    def fail_group(self, numbers: Iterable[int]) -> None:
        """Take note that jobs which were submitted together have failed.

        Those that never started have no log and are not to blame, unless none had started.
        """
        members = {number: self.running.pop(number) for number in numbers if number in self.running}
        started = {number: job for number, job in members.items() if any(log.exists() for log in job.logs)}
        self.failed |= started or members

    @property
    def total(self) -> int:
        """Return the number of jobs."""
        return self.planned.total()

    @property
    def done(self) -> int:
        """Return the number of jobs that succeeded."""
        return self.finished.total()

    def seconds_left(self) -> float | None:
        """Return an estimate from the mean time of each rule's finished jobs; None before the first one.

        A rule that has finished none is assumed to be like the average job, or like its longest running one.
        As many jobs are assumed to run at a time as did so far.
        """
        if not self.done:
            return None
        now = self._clock()
        ages: dict[str, list[float]] = {}
        for number, job in list(self.running.items()):
            ages.setdefault(job.rule, []).append(now - self._starts[number])
        average = self._seconds.total() / self.done
        work = 0.0
        for rule, count in self.planned.items():
            known = self.finished[rule]
            expected = self._seconds[rule] / known if known else max([average, *ages.get(rule, [])])
            spent = sum(min(age, expected) for age in ages.get(rule, []))
            work += (count - known) * expected - spent
        busy = self._seconds.total() + sum(map(sum, ages.values()))
        at_a_time = max(1.0, busy / max(now - self._begin, 1e-9))
        return max(work, 0.0) / at_a_time

    def overview(self) -> str:
        """Return how many jobs there are; rules with a single one are counted together."""
        many = {rule: count for rule, count in self.planned.most_common() if count > 1}
        counts = many | {"other": self.total - sum(many.values())}
        details = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        total = f"{self.total} job{'s' if self.total != 1 else ''}"
        return f"{total}: {details}" if many else total

    def summary(self) -> str:
        """Return in one line what is done, and how long it took and may still take."""
        left = self.seconds_left()
        parts = [
            f"{self.done} of {self.total} jobs done",
            f"{len(self.running)} running",
            f"{_duration(self._clock() - self._begin)} elapsed",
            *([f"about {_duration(left)} left"] if left is not None and self.done < self.total else []),
        ]
        return ", ".join(parts)

    def failure(self) -> str:
        """Return a text that names the jobs that have failed for good, with log and cause, and what to do."""
        failed = self.failed.values()
        lines = sorted(job.failure for job in failed)
        if not lines:
            return ""
        advice = [ADVICE] if all(job.local for job in failed) else [ADVICE, CLUSTER_ADVICE]
        more = [f"  and {len(lines) - MOST_FAILED} more"] if len(lines) > MOST_FAILED else []
        return "\n".join([f"Failed for good: {len(lines)}", *lines[:MOST_FAILED], *more, *advice])


def last_line(log: Path) -> str:
    """Return the last line of a log without its time stamp; "" if there is none yet."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL_BYTES))
            lines = file.read().decode("utf-8", errors="replace").split("\n")
    except OSError:
        return ""
    text = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return re.sub(r"^\d\d:\d\d:\d\d ", "", text)


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
