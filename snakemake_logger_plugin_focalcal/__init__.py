"""Snakemake's terminal output for focalcal (`logger: focalcal` in profiles/default).

Snakemake describes each job on standard error, some in thousands of characters. This plugin summarises what
concerns jobs, in a live screen on a terminal and in sparse lines elsewhere, and passes everything else on.
Who asks for details by --verbose, --quiet, -p, --debug-dag or a dry run gets Snakemake's own output.
Snakemake's log file, under .snakemake/log, has every record.

The package imports nothing of focalcal when it is loaded: that is before the Snakefile decides which checkout
of focalcal is used.
"""

import argparse
import logging
import sys
from collections.abc import Callable, Collection
from itertools import takewhile
from pathlib import Path
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_focalcal.display import Lines, Screen
from snakemake_logger_plugin_focalcal.jobs import Job, Jobs

REPORT = Path("results/report.html")
STOPPING = ("Will exit", "Terminating", "Shutting down")
"""How Snakemake answers to Ctrl-C and other signals."""
when_idle: Callable[[Collection[str]], tuple[int, str]] | None = None
"""Set by the Snakefile: given the names of all rules where none has anything to do, exit code and text."""


class LogHandler(LogHandlerBase):
    """Shows progress while the workflow runs, and ends with the failures or with where the report is."""

    def __post_init__(self) -> None:
        asked = self.common_settings
        self._details = bool(
            asked.dryrun or asked.verbose or asked.printshellcmds or asked.debug_dag or asked.quiet
        )
        self._jobs = Jobs()
        self._display: Lines | Screen | None = None
        self._rules: set[str] = set()
        self._started = self._planned = self._error_seen = self._closed = False
        self._folder = Path.cwd()

    @property
    def writes_to_stream(self) -> bool:
        """Return whether this takes the place of Snakemake's own output."""
        return not self._details

    writes_to_file = False
    has_filter = True
    """Its filter passes everything, since events that are not shown are counted."""
    has_formatter = False

    @property
    def needs_rulegraph(self) -> bool:
        """Return whether the rules are needed, by which a workflow with nothing to do knows of its report."""
        return not self.common_settings.dryrun

    def emit(self, record: logging.LogRecord) -> None:
        """Take note of a record; show it unless it is about jobs."""
        self._error_seen |= record.levelno >= logging.ERROR
        event = getattr(record, "event", None)
        # The method `_take_job_info` takes records of LogEvent.JOB_INFO, and so on.
        if take := event and getattr(self, f"_take_{event.value}", None):
            take(record)
        elif event not in _HIDDEN and not self._details and not self._is_chatter(record):
            self._write(self.format(record))

    def close(self) -> None:
        """Remove the live lines and write what comes last."""
        if self._closed:
            return
        self._closed = True
        if self._display is not None:
            self._display.stop()
        code = self._answer_if_idle()
        if text := self._jobs.failure() or (not code and self._where_the_report_is()):
            _print(text)
        if self._error_seen and not self._jobs.total and (mistake := _mistake_in_overlays(self._folder)):
            _print(f"error: {mistake}")
            code = 2
        super().close()
        # Snakemake ignores other exceptions here.
        if code:
            raise SystemExit(code)

    def _answer_if_idle(self) -> int:
        """Write what the Snakefile says of results that are left as they are; return the exit code."""
        # With --until, there may be a plan without jobs, and what comes after may not belong.
        idle = self._started and not self._planned and not self._error_seen
        if not (idle and self._rules and when_idle):
            return 0
        try:
            code, text = when_idle(self._rules)
        except Exception as error:  # noqa: BLE001  nothing else would show it
            code, text = 1, f"error: the results could not be looked at: {error!r}"
        if code or not self.common_settings.quiet:
            _print(text)
        return code

    def _where_the_report_is(self) -> str:
        asked = self._started and any(rule.endswith("report") for rule in self._rules)
        if not asked or self._error_seen or self.common_settings.quiet or not REPORT.exists():
            return ""
        return f"The report: {REPORT.resolve()}"

    def _take_workflow_started(self, _record: Any) -> None:
        self._started = not self.common_settings.dryrun

    def _take_rulegraph(self, record: Any) -> None:
        self._rules = {node["rule"] for node in record.rulegraph["nodes"]}

    def _take_run_info(self, record: Any) -> None:
        self._planned = True
        self._jobs.plan(record.stats)
        if not self._details:
            self._write(self._jobs.overview())

    def _take_job_info(self, record: Any) -> None:
        logs = tuple(map(Path, record.log))
        self._jobs.start(record.jobid, Job(record.rule_name, logs, dict(record.wildcards), record.local))
        self._show()

    def _take_job_finished(self, record: Any) -> None:
        self._jobs.end(record.job_id, succeeded=True)
        self._show()

    def _take_group_error(self, record: Any) -> None:
        self._jobs.fail_group(member["jobid"] for member in record.job_error_info)

    def _take_job_error(self, record: Any) -> None:
        self._jobs.end(record.jobid, succeeded=False)
        if not self._details:
            failed = " ".join([record.rule_name, *map(str, record.log)])
            self._write(": ".join(["failed", failed, *_reason(record)]))

    def _is_chatter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is about scheduling, or repeats the command of a job that failed."""
        if not self._jobs.total or record.getMessage().startswith(STOPPING):
            return False
        return record.levelno < logging.WARNING or getattr(record, "exception", None) == "RuleException"

    def _show(self) -> None:
        if self._details:
            return
        if self._display is None:
            # A single job may print what it finds, as `plan` does.
            on_screen = sys.stderr.isatty() and self._jobs.total > 1
            self._display = Screen(self._jobs) if on_screen else Lines(self._jobs, _print)
        self._display.update()

    def _write(self, text: str) -> None:
        # Snakemake has records without a text.
        if text not in ("", "None"):
            (self._display.write if self._display is not None else _print)(text)


_HIDDEN = {
    *(LogEvent.RESOURCES_INFO, LogEvent.PROGRESS, LogEvent.SHELLCMD, LogEvent.JOB_STARTED),
    *(LogEvent.GROUP_INFO, LogEvent.DEBUG_DAG),
}


def _mistake_in_overlays(folder: Path) -> str:
    """Return what is wrong with the text of a file of --configfile, "" if nothing is.

    Snakemake reads these files before the Snakefile, and tells a mistake without file and line.
    """
    from focalcal.common.errors import UserError  # noqa: PLC0415
    from focalcal.config.yaml_files import check_yaml_files  # noqa: PLC0415

    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--configfile", "--configfiles", nargs="+", action="extend", default=[])
    overlays = parser.parse_known_args()[0].configfile
    try:
        check_yaml_files(folder / overlay for overlay in overlays)
    except UserError as error:
        return str(error)
    return ""


def _reason(record: Any) -> list[str]:
    """Return what the cluster said of a job that failed, in one line; nothing if it said nothing.

    The command of the submission, which Snakemake's log file has, follows in indented lines.
    """
    lines = (record.rule_msg or "").splitlines()
    said = " ".join(takewhile(lambda line: not line.startswith(" "), lines))
    return [said] if said else []


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201  this is the terminal's home
