import io
import logging
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.logging import LoggerManager
from snakemake.settings.types import OutputSettings
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase

import snakemake_logger_plugin_focalcal
from snakemake_logger_plugin_focalcal import LogHandler
from snakemake_logger_plugin_focalcal.jobs import ADVICE, CLUSTER_ADVICE, Job, Jobs

LOG = "logs/train/d/m/ce/seed1.log"

HEADER = dict.fromkeys(
    (
        *("datetime", "workflow_id", "platform", "host", "user", "snakemake_version", "python_version"),
        *("cmd", "snakefile_main", "basedir", "rundir", "cwd", "configfiles", "config_md5"),
    ),
    "",
)


class Snakemake:
    """Sends events as Snakemake's logger does; `close` waits for the plugin."""

    def __init__(self, **settings):
        self.logger = logging.Logger("snakemake")  # noqa: LOG001  not shared with other tests
        self.manager = LoggerManager(
            self.logger,
            OutputSettings(log_handler_settings={"focalcal": LogHandlerSettingsBase()}, **settings),
        )
        (self.plugin,) = self.manager.plugin_handlers
        assert isinstance(self.plugin, LogHandler)

    def plan(self, rules=("train",), **counts):
        self.logger.info("Workflow has started!", extra={"event": LogEvent.WORKFLOW_STARTED, **HEADER})
        self.event(LogEvent.RULEGRAPH, rulegraph={"nodes": [{"rule": rule} for rule in rules]})
        if counts:
            total = {"total": sum(counts.values())}
            self.logger.info("Job stats", extra={"event": LogEvent.RUN_INFO, "stats": counts | total})

    def event(self, event, **facts):
        self.logger.info(None, extra={"event": event, **facts})

    def start(self, number, log=LOG, local=True, **wildcards):
        facts = {"jobid": number, "rule_name": "train", "log": [log] if log else [], "local": local}
        self.logger.info("Select jobs to execute...")
        self.event(LogEvent.JOB_INFO, wildcards=wildcards, rule_msg="x" * 5000, reason="", **facts)

    def finish(self, number):
        self.event(LogEvent.JOB_FINISHED, job_id=number)
        self.event(LogEvent.PROGRESS, done=1, total=2)

    def fail(self, number, rule_msg=None, log=LOG):
        self.logger.error("Command 'xxx'", extra={"event": LogEvent.ERROR, "exception": "RuleException"})
        facts = {"jobid": number, "rule_name": "train", "log": [log], "rule_msg": rule_msg}
        self.logger.error("Error in rule", extra={"event": LogEvent.JOB_ERROR, **facts})

    def close(self, capsys):
        self.manager.stop()
        return capsys.readouterr().err.splitlines()


@pytest.fixture(autouse=True)
def report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "results" / "report.html"
    path.parent.mkdir()
    path.touch()
    return path


def test_lines_do_not_grow_with_the_number_of_jobs(capsys, report):
    snakemake = Snakemake()
    snakemake.logger.info("Building DAG of jobs...")
    snakemake.plan(("train", "report"), train=5000)
    for number in range(5000):
        snakemake.start(number)
        snakemake.finish(number)
    building, planned, *lines, last = snakemake.close(capsys)
    assert building == "Building DAG of jobs..."
    assert planned == "5000 jobs: 5000 train"
    assert [re.sub(r"^\S+ | jobs done.*", "", line) for line in lines] == [
        f"{done} of 5000" for done in range(500, 5001, 500)
    ]
    assert last == f"The report: {report}"


def test_a_failed_job_is_named_and_the_end_says_why_instead_of_where_the_report_is(capsys):
    Path(LOG).parent.mkdir(parents=True)
    Path(LOG).write_text("12:00:00 epoch 1/2\n12:00:01 error: config key 'x' is 1\n\n", encoding="utf-8")
    snakemake = Snakemake()
    snakemake.plan(("train", "report"), train=3)
    snakemake.start(0)
    snakemake.finish(0)
    snakemake.start(1, loss="ce", seed="1")
    snakemake.fail(1)
    snakemake.logger.error("Exiting because a job execution failed.")
    lines = snakemake.close(capsys)
    assert lines[-6:] == [
        f"failed: train {LOG}",
        "Exiting because a job execution failed.",
        "Failed for good: 1",
        f"  train loss=ce, seed=1: {LOG}",
        "    error: config key 'x' is 1",
        ADVICE,
    ]
    assert not any("Command 'xxx'" in line for line in lines)


def test_a_job_that_succeeds_when_it_is_tried_again_has_not_failed(capsys):
    snakemake = Snakemake()
    snakemake.plan(train=1)
    snakemake.start(0)
    snakemake.fail(0)
    snakemake.start(0)
    snakemake.finish(0)
    assert not any(line.startswith("Failed for good") for line in snakemake.close(capsys))


def test_of_a_failed_group_only_jobs_that_had_started_are_named(capsys, tmp_path):
    started = tmp_path / "started.log"
    started.touch()
    snakemake = Snakemake()
    snakemake.plan(train=3)
    for number, log in enumerate((str(started), "logs/never.log", "logs/alone.log")):
        snakemake.start(number, log, local=False)
    snakemake.event(LogEvent.GROUP_ERROR, job_error_info=[{"jobid": 0}, {"jobid": 1}])
    for number, log in enumerate((str(started), "logs/never.log", "logs/alone.log")):
        snakemake.fail(number, log=log)
    lines = snakemake.close(capsys)
    assert lines[-5:] == [
        "Failed for good: 2",
        f"  train: {started}",
        "  train: logs/alone.log",
        ADVICE,
        CLUSTER_ADVICE,
    ]


def test_what_the_cluster_said_of_a_failed_job_is_shown_without_the_command(capsys):
    snakemake = Snakemake()
    snakemake.plan(train=1)
    snakemake.start(0)
    snakemake.fail(
        0,
        "SLURM sbatch failed. The error message was 'sbatch: error: bad partition\nsbatch: error: refused'.\n"
        "    sbatch call:\n        sbatch --parsable -p nope\n",
    )
    (line,) = [line for line in snakemake.close(capsys) if line.startswith("failed: ")]
    assert line == (
        f"failed: train {LOG}: SLURM sbatch failed. The error message was "
        "'sbatch: error: bad partition sbatch: error: refused'."
    )


@pytest.mark.parametrize("option", ["dryrun", "verbose", "printshellcmds", "debug_dag", "quiet"])
def test_who_asks_for_details_gets_snakemakes_own_output(option, capsys, report):
    snakemake = Snakemake(**{option: {"host"} if option == "quiet" else True})
    assert [handler.name for handler in snakemake.logger.handlers if handler.name] == ["DefaultStreamHandler"]
    snakemake.plan(["report"])
    ending = [] if option in {"dryrun", "quiet"} else [f"The report: {report}"]
    assert [line for line in snakemake.close(capsys) if "report" in line] == ending


@pytest.mark.parametrize("text", ["runs:\n\t- a\n", ""])
def test_a_mistake_that_snakemake_finds_before_the_snakefile_is_told_with_its_file(
    capsys, tmp_path, monkeypatch, text
):
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["snakemake", "-n", "--configfile", "mine.yaml", "--cores", "1"])
    snakemake = Snakemake(dryrun=True)
    snakemake.logger.error("Config file is not valid", extra={"event": LogEvent.ERROR})
    with pytest.raises(SystemExit) as ended:
        snakemake.close(capsys)
    assert ended.value.code == 2
    assert f"error: {tmp_path / 'mine.yaml'}" in capsys.readouterr().err


def test_on_a_terminal_running_jobs_show_what_their_log_says_last(monkeypatch, report):
    log = Path(LOG)
    log.parent.mkdir(parents=True)
    log.write_text("12:00:00 epoch 1/9\n12:00:01 epoch 2/9, 0:00:07 left, loss 0.5\n", encoding="utf-8")
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "90")
    snakemake = Snakemake()
    # Without the thread between them, so that the screen can be looked at in between.
    plugin = SimpleNamespace(put_nowait=snakemake.plugin.handle)
    snakemake.logger.handlers[0].queue = plugin
    snakemake.plan(("train", "report"), train=2)
    snakemake.start(1)
    snakemake.plugin._display._live.refresh()
    snakemake.finish(1)
    snakemake.plugin._display._live.refresh()
    snakemake.logger.warning("file system is slow")
    snakemake.manager.stop()
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue())
    assert "train/d/m/ce/seed1  epoch 2/9, 0:00:07 left, loss 0.5" in shown
    assert "1 of 2 jobs done, 0 running" in shown
    assert "file system is slow" in shown
    assert shown.endswith(f"The report: {report}\n")
    assert screen.getvalue().count("\x1b[?25l") == screen.getvalue().count("\x1b[?25h") == 1


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_time_left_weighs_rules_by_their_own_mean():
    clock = Clock()
    jobs = Jobs(clock)
    jobs.plan({"train": 4, "report": 2, "total": 6})
    assert jobs.seconds_left() is None
    # Two at a time: 10 s each for two trainings, 2 s for one report.
    for rule, seconds in (("train", 10), ("report", 2)):
        jobs.start(1, Job(rule, (), {}, local=True))
        jobs.start(2, Job(rule, (), {}, local=True))
        clock.now += seconds
        jobs.end(1, succeeded=True)
        jobs.end(2, succeeded=rule == "train")
    # 2 trainings of 10 s and 1 report of 2 s, by (10 + 10 + 2) / 12 jobs at a time.
    assert jobs.seconds_left() == pytest.approx((20 + 2) / (22 / 12))
    jobs.start(3, Job("train", (), {}, local=True))
    clock.now += 4
    # 4 s of 10 s are done, and 26 s of work took 16 s.
    assert jobs.seconds_left() == pytest.approx((20 + 2 - 4) / (26 / 16))


class TestIdle:
    """Where there is nothing to do, the Snakefile is asked about the results."""

    def asked(self, monkeypatch, capsys, answer, **counts):
        rules = []

        def when_idle(names):
            rules.append(names)
            return answer()

        monkeypatch.setattr(snakemake_logger_plugin_focalcal, "when_idle", when_idle)
        snakemake = Snakemake()
        snakemake.plan(rules=("train", "report"), **counts)
        code = 0
        try:
            snakemake.manager.stop()
        except SystemExit as error:
            code = error.code
        return rules, code, capsys.readouterr().err.splitlines()

    def test_its_answer_is_shown_before_the_report(self, monkeypatch, capsys, report):
        rules, code, lines = self.asked(monkeypatch, capsys, lambda: (0, "belongs"))
        assert (rules, code) == ([{"train", "report"}], 0)
        assert lines == ["belongs", f"The report: {report}"]

    def test_a_fault_ends_with_its_exit_code_and_no_report(self, monkeypatch, capsys):
        _, code, lines = self.asked(monkeypatch, capsys, lambda: (2, "error: differs"))
        assert (code, lines) == (2, ["error: differs"])

    def test_an_unexpected_error_is_not_swallowed(self, monkeypatch, capsys):
        _, code, (line,) = self.asked(monkeypatch, capsys, lambda: 1 / 0)
        assert code == 1
        assert line.startswith("error: the results could not be looked at: ZeroDivisionError")

    @pytest.mark.parametrize("jobs", [0, 1])
    def test_with_a_plan_nothing_is_asked(self, monkeypatch, capsys, jobs):
        assert self.asked(monkeypatch, capsys, lambda: (2, "error"), train=jobs)[:2] == ([], 0)
