"""What a person sees while the workflow runs: one live screen on a terminal, sparse lines elsewhere.

Snakemake describes each job on standard error, some in thousands of characters. `Terminal` takes the place
of its stream handler, keeps what concerns jobs to itself and passes everything else on. Snakemake's log file,
under .snakemake/log, still has every record.
"""

import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focalcal.workflow.job_logs import last_line

if TYPE_CHECKING:
    from rich.console import Group

STREAM_HANDLER = "DefaultStreamHandler"
"""Snakemake's name for the handler that writes to the terminal unless a logger plugin does."""
STEPS = 10
"""Elsewhere than on a terminal, a line appears whenever another tenth of the jobs is done,"""
HEARTBEAT_SECONDS = 600.0
"""and after each span of this length, with what the jobs that run say last."""
HEARTBEAT_JOBS = 4
BAR_WIDTH = 30
ABOUT_JOBS = frozenset(
    [
        *("workflow_started", "resources_info", "run_info", "progress", "shellcmd"),
        *("job_info", "job_started", "job_finished", "job_error", "group_info", "group_error"),
    ]
)
"""Snakemake's events that are summarised here instead of being shown."""
STOPPING = ("Will exit", "Terminating", "Shutting down")
"""How Snakemake answers to Ctrl-C and other signals."""


@dataclass(frozen=True)
class RunningJob:
    """One job that has started or, on a cluster, was submitted."""

    rule: str
    log: Path | None
    started: float

    @property
    def name(self) -> str:
        """Return the path of its log below logs/ without the suffix, which tells rule and run."""
        return "/".join(self.log.with_suffix("").parts[1:]) if self.log else self.rule

    @property
    def text(self) -> str:
        """Return its name and what its log says last."""
        return f"{self.name}  {last_line(self.log) if self.log else ''}".rstrip()


class Jobs:
    """The jobs of one invocation: how many there are, are done and run, and how long the rest may take."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started = clock()
        self.planned: Counter[str] = Counter()
        self.finished: Counter[str] = Counter()
        self.running: dict[int, RunningJob] = {}
        self._seconds: Counter[str] = Counter()

    def plan(self, counts: Mapping[str, int]) -> None:
        """Take the number of jobs of each rule."""
        self.planned = Counter({rule: count for rule, count in counts.items() if rule != "total"})

    def start(self, number: int, rule: str, log: Path | None) -> None:
        """Take note that a job has started."""
        self.running[number] = RunningJob(rule, log, self._clock())

    def end(self, number: int, *, succeeded: bool) -> None:
        """Take note that a job has ended; one that failed may start again."""
        job = self.running.pop(number, None)
        if job is not None and succeeded:
            self.finished[job.rule] += 1
            self._seconds[job.rule] += self._clock() - job.started

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
        for job in list(self.running.values()):
            ages.setdefault(job.rule, []).append(now - job.started)
        average = self._seconds.total() / self.done
        work = 0.0
        for rule, count in self.planned.items():
            known = self.finished[rule]
            expected = self._seconds[rule] / known if known else max([average, *ages.get(rule, [])])
            spent = sum(min(age, expected) for age in ages.get(rule, []))
            work += (count - known) * expected - spent
        busy = self._seconds.total() + sum(map(sum, ages.values()))
        at_a_time = max(1.0, busy / max(now - self._started, 1e-9))
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
            f"{_duration(self._clock() - self._started)} elapsed",
            *([f"about {_duration(left)} left"] if left is not None and self.done < self.total else []),
        ]
        return ", ".join(parts)


class Lines:
    """Sparse plain lines, for a log or a pipe; their number does not grow with that of the jobs."""

    def __init__(self, jobs: Jobs, write: Callable[[str], None]) -> None:
        self._jobs, self.write = jobs, write
        self._step = 0
        self._stopped = threading.Event()
        threading.Thread(target=self._beat, daemon=True).start()

    def update(self) -> None:
        """Write a line if another tenth of the jobs is done."""
        step = STEPS * self._jobs.done // max(self._jobs.total, 1)
        if step > self._step:
            self._step = step
            self.write(f"{time.strftime('%H:%M:%S')} {self._jobs.summary()}")

    def stop(self) -> None:
        """Write nothing more."""
        self._stopped.set()

    def _beat(self) -> None:
        while not self._stopped.wait(HEARTBEAT_SECONDS):
            shown = list(self._jobs.running.values())[:HEARTBEAT_JOBS]
            self.write(f"{time.strftime('%H:%M:%S')} {self._jobs.summary()}")
            for job in shown:
                self.write(f"  {job.text}")


class Screen:
    """A few lines at the bottom of a terminal, redrawn in place: the whole, then each running job."""

    def __init__(self, jobs: Jobs) -> None:
        # Imported here: most of what Snakemake is asked for shows no screen.
        from rich.console import Console  # noqa: PLC0415
        from rich.live import Live  # noqa: PLC0415

        self._jobs = jobs
        self._console = Console(stderr=True, highlight=False, markup=False)
        self._live = Live(
            get_renderable=self._screen, console=self._console, refresh_per_second=2, transient=True
        )
        self._live.start()

    def write(self, text: str) -> None:
        """Write a text above the live lines."""
        self._console.print(text, soft_wrap=True)

    def update(self) -> None:
        """Draw nothing: the screen redraws itself."""

    def stop(self) -> None:
        """Replace the live lines by what was done in all."""
        self._live.stop()
        self.write(self._jobs.summary())

    def _screen(self) -> "Group":
        from rich.console import Group  # noqa: PLC0415
        from rich.progress_bar import ProgressBar  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        running = list(self._jobs.running.values())
        rows = max(1, self._console.height - 4)
        lines = [job.text for job in running[:rows]]
        if len(running) > rows:
            lines.append(f"and {len(running) - rows} more")
        head = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=self._jobs.total, completed=self._jobs.done, width=BAR_WIDTH)
        head.add_row(bar, Text(self._jobs.summary(), no_wrap=True, overflow="ellipsis"))
        return Group(
            head,
            *(Text(f"  {line}", no_wrap=True, overflow="ellipsis") for line in lines),
        )


class Terminal(logging.Handler):
    """The handler that stands before Snakemake's own one.

    `ending` returns what is written last, after everything that Snakemake says. With `complete`, all records
    are passed on to `stream`.
    """

    def __init__(self, stream: logging.Handler, ending: Callable[[], str], *, complete: bool) -> None:
        super().__init__()
        self._stream, self._ending, self._complete = stream, ending, complete
        self._jobs = Jobs()
        self._display: Lines | Screen | None = None
        self._closed = False
        self.failure = ""
        """What to say in the end instead of `ending`, if jobs have failed."""
        self.error_seen = False

    def emit(self, record: logging.LogRecord) -> None:
        """Summarise a record about jobs, pass on any other."""
        event = getattr(record, "event", None)
        self.error_seen |= record.levelno >= logging.ERROR
        if not self._complete and event in ABOUT_JOBS:
            self._take(event, record)
        elif not self._is_chatter(record):
            self._pass_on(record)

    def close(self) -> None:
        """Remove the live lines and write what comes last."""
        if self._closed:
            return
        self._closed = True
        if self._display is not None:
            self._display.stop()
        self._stream.close()
        text = self.failure or ("" if self.error_seen else self._ending())
        if text:
            print(text, file=sys.stderr, flush=True)  # noqa: T201  the last line of a run
        super().close()

    def _is_chatter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is about scheduling, or repeats the command of a job that failed."""
        if self._complete or not self._jobs.total or record.getMessage().startswith(STOPPING):
            return False
        return record.levelno < logging.WARNING or getattr(record, "exception", None) == "RuleException"

    def _pass_on(self, record: logging.LogRecord) -> None:
        if isinstance(self._display, Screen):
            self._display.write(self._stream.format(record))
        else:
            self._stream.handle(record)

    def _take(self, event: str, record: Any) -> None:
        if event == "run_info":
            self._jobs.plan(record.stats)
            self._write(self._jobs.overview())
        elif event == "job_info":
            self._jobs.start(record.jobid, record.rule_name, Path(record.log[0]) if record.log else None)
            self._show()
        elif event == "job_finished":
            self._jobs.end(record.job_id, succeeded=True)
            self._show()
        elif event == "job_error":
            self._jobs.end(record.jobid, succeeded=False)
            self._write(": ".join(["failed", " ".join([record.rule_name, *record.log]), *_reason(record)]))

    def _show(self) -> None:
        if self._display is None:
            # A single job may print what it finds, as `plan` does.
            alone = self._jobs.total == 1
            on_screen = sys.stderr.isatty() and not alone
            self._display = Screen(self._jobs) if on_screen else Lines(self._jobs, self._write)
        self._display.update()

    def _write(self, text: str) -> None:
        if isinstance(self._display, Screen):
            self._display.write(text)
        else:
            print(text, file=sys.stderr, flush=True)  # noqa: T201  this is the terminal's home


def attach(logger: logging.Logger, settings: Any, ending: Callable[[], str]) -> Terminal:
    """Return the handler that now stands before the one by which Snakemake's `logger` writes to the terminal.

    A logger plugin is left alone, and so is what a user asks for by --verbose, --quiet, -p or a dry run.
    """
    stream = next((one for one in logger.handlers if one.name == STREAM_HANDLER), None)
    details = settings.dryrun or settings.verbose or settings.printshellcmds or settings.debug_dag
    complete = bool(details or settings.quiet or stream is None)
    terminal = Terminal(stream or logging.NullHandler(), str if settings.quiet else ending, complete=complete)
    if stream is not None:
        logger.removeHandler(stream)
    logger.addHandler(terminal)
    return terminal


def _reason(record: Any) -> list[str]:
    """Return what the cluster said of a job that failed, in one line; nothing if it said nothing.

    The command of the submission, which Snakemake's log file has, follows in indented lines.
    """
    lines = (record.rule_msg or "").splitlines()
    told = " ".join(takewhile(lambda line: not line.startswith(" "), lines))
    return [told] if told else []


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
