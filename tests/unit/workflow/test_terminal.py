import io
import logging
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from focalcal.workflow import terminal
from focalcal.workflow.job_logs import last_line
from focalcal.workflow.terminal import Jobs, attach

SETTINGS = {"dryrun": False, "verbose": False, "printshellcmds": False, "debug_dag": False, "quiet": None}


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def snakemake(**settings):
    """Return a logger with a stream handler as Snakemake has, its stream, and the terminal before it."""
    logger = logging.Logger("snakemake")  # noqa: LOG001  not shared with other tests
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.name = terminal.STREAM_HANDLER
    logger.addHandler(handler)
    attached = attach(logger, SimpleNamespace(**SETTINGS | settings), lambda: "The report: r.html")
    return logger, stream, attached


def run_jobs(logger, count, *, log="logs/train/d/m/ce/seed1.log", failing=(), rule_msg=None):
    logger.info("Building DAG of jobs...")
    logger.info("Job stats", extra={"event": "run_info", "stats": {"train": count, "total": count}})
    for number in range(count):
        logger.info("Select jobs to execute...")
        facts = {"jobid": number, "rule_name": "train", "log": [log]}
        logger.info("x" * 5000, extra={"event": "job_info", **facts})
        if number in failing:
            logger.error("Command 'xxx'", extra={"event": "error", "exception": "RuleException"})
            logger.error("Error in rule train", extra={"event": "job_error", "rule_msg": rule_msg, **facts})
        else:
            logger.info("Finished", extra={"event": "job_finished", "job_id": number})
            logger.info(None, extra={"event": "progress", "done": number + 1, "total": count})


def test_lines_do_not_grow_with_the_number_of_jobs(capsys):
    logger, stream, attached = snakemake()
    run_jobs(logger, 5000)
    attached.close()
    assert stream.getvalue() == "Building DAG of jobs...\n"
    first, *lines, last = capsys.readouterr().err.splitlines()
    assert first == "5000 jobs: 5000 train"
    assert [re.sub(r"^\S+ | jobs done.*", "", line) for line in lines] == [
        f"{done} of 5000" for done in range(500, 5001, 500)
    ]
    assert last == "The report: r.html"


def test_a_failed_job_is_named_and_the_end_says_why_instead_of_where_the_report_is(capsys):
    logger, stream, attached = snakemake()
    run_jobs(logger, 3, failing={1})
    logger.error("Exiting because a job execution failed.")
    attached.failure = "Failed for good: 1"
    attached.close()
    assert stream.getvalue() == "Building DAG of jobs...\nExiting because a job execution failed.\n"
    lines = capsys.readouterr().err.splitlines()
    assert "failed: train logs/train/d/m/ce/seed1.log" in lines
    assert lines[-1] == "Failed for good: 1"


def test_a_single_job_is_not_called_jobs():
    jobs = Jobs()
    jobs.plan({"plan": 1, "total": 1})
    assert jobs.overview() == "1 job"


def test_what_the_cluster_said_of_a_failed_job_is_shown_without_the_command(capsys):
    logger, _, attached = snakemake()
    message = (
        "SLURM sbatch failed. The error message was 'sbatch: error: bad partition\nsbatch: error: refused'.\n"
        "    sbatch call:\n        sbatch --parsable -p nope\n"
    )
    run_jobs(logger, 1, failing={0}, rule_msg=message)
    attached.close()
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("failed: ")]
    assert line == (
        "failed: train logs/train/d/m/ce/seed1.log: SLURM sbatch failed. The error message was "
        "'sbatch: error: bad partition sbatch: error: refused'."
    )


def test_after_another_error_no_report_is_promised(capsys):
    logger, _, attached = snakemake()
    logger.error("Directory cannot be locked", extra={"event": "error", "exception": "LockException"})
    attached.close()
    assert capsys.readouterr().err == ""


def test_warnings_and_answers_to_signals_are_passed_on_while_jobs_run():
    logger, stream, attached = snakemake()
    run_jobs(logger, 2)
    logger.warning("file system is slow")
    logger.info("Will exit after finishing currently running jobs (scheduler).")
    attached.close()
    assert stream.getvalue().splitlines()[1:] == [
        "file system is slow",
        "Will exit after finishing currently running jobs (scheduler).",
    ]


@pytest.mark.parametrize("option", ["dryrun", "verbose", "printshellcmds", "debug_dag", "quiet"])
def test_who_asks_for_details_gets_all_of_snakemakes_output(option, capsys):
    logger, stream, attached = snakemake(**{option: True})
    run_jobs(logger, 2)
    attached.close()
    assert stream.getvalue().count("x" * 5000) == 2
    assert capsys.readouterr().err == ("" if option == "quiet" else "The report: r.html\n")


def test_a_logger_plugin_is_left_alone():
    logger = logging.Logger("snakemake")  # noqa: LOG001  not shared with other tests
    plugin = logging.NullHandler()
    logger.addHandler(plugin)
    attach(logger, SimpleNamespace(**SETTINGS), str)
    assert plugin in logger.handlers


def test_on_a_terminal_running_jobs_show_what_their_log_says_last(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    log = Path("logs/train/d/m/ce/seed1.log")
    log.parent.mkdir(parents=True)
    log.write_text("12:00:00 epoch 1/9\n12:00:01 epoch 2/9, 0:00:07 left, loss 0.5\n", encoding="utf-8")
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "90")
    logger, _, attached = snakemake()
    logger.info("", extra={"event": "run_info", "stats": {"train": 2, "total": 2}})
    logger.info("", extra={"event": "job_info", "jobid": 1, "rule_name": "train", "log": [str(log)]})
    attached._display._live.refresh()
    logger.info("", extra={"event": "job_finished", "job_id": 1})
    attached._display._live.refresh()
    logger.warning("file system is slow")
    attached.close()
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue())
    assert "train/d/m/ce/seed1  epoch 2/9, 0:00:07 left, loss 0.5" in shown
    assert "1 of 2 jobs done, 0 running" in shown
    assert "file system is slow" in shown
    assert shown.endswith("The report: r.html\n")
    assert screen.getvalue().count("\x1b[?25l") == screen.getvalue().count("\x1b[?25h") == 1


def test_a_single_job_may_print_and_gets_no_screen(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    logger, _, attached = snakemake()
    run_jobs(logger, 1)
    assert isinstance(attached._display, terminal.Lines)
    attached.close()
    assert "\x1b" not in capsys.readouterr().err


def test_time_left_weighs_rules_by_their_own_mean(clock):
    jobs = Jobs(clock)
    jobs.plan({"train": 4, "report": 2, "total": 6})
    assert jobs.seconds_left() is None
    # Two at a time: 10 s each for two trainings, 2 s for one report.
    for rule, seconds in (("train", 10), ("report", 2)):
        jobs.start(1, rule, None)
        jobs.start(2, rule, None)
        clock.now += seconds
        jobs.end(1, succeeded=True)
        jobs.end(2, succeeded=rule == "train")
    # 2 trainings of 10 s and 1 report of 2 s, by (10 + 10 + 2) / 12 jobs at a time.
    assert jobs.seconds_left() == pytest.approx((20 + 2) / (22 / 12))
    jobs.start(3, "train", None)
    clock.now += 4
    # 4 s of 10 s are done, and 26 s of work took 16 s.
    assert jobs.seconds_left() == pytest.approx((20 + 2 - 4) / (26 / 16))


def test_a_rule_without_finished_jobs_counts_like_its_longest_running_one(clock):
    jobs = Jobs(clock)
    jobs.plan({"fetch": 1, "train": 2})
    jobs.start(1, "fetch", None)
    clock.now += 1
    jobs.end(1, succeeded=True)
    jobs.start(2, "train", None)
    clock.now += 30
    assert jobs.seconds_left() == pytest.approx(30 + 30 - 30)


def test_overview_counts_rules_with_one_job_together():
    jobs = Jobs()
    jobs.plan({"train": 3, "tables": 1, "report": 1, "total": 5})
    assert jobs.overview() == "5 jobs: 3 train, 2 other"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", ""),
        (b"\n\n", ""),
        (b"one\ntwo\n\n", "two"),
        (b"12:34:56 said\n", "said"),
        (b"a" * 9000 + b"\nz", "z"),
    ],
)
def test_last_line_of_a_log(tmp_path, content, expected):
    log = tmp_path / "a.log"
    log.write_bytes(content)
    assert last_line(log) == expected
    assert last_line(tmp_path / "none.log") == ""
