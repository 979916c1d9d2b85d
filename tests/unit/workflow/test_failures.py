from types import SimpleNamespace

from focalcal.workflow.failures import ADVICE, CLUSTER_ADVICE, report


def job(rule, log, **wildcards):
    return SimpleNamespace(
        rule=SimpleNamespace(name=rule),
        log=[log] if log else [],
        wildcards_dict=wildcards,
        is_group=lambda: False,
    )


def group(*members):
    return SimpleNamespace(jobs=members, is_group=lambda: True)


def test_names_each_job_with_its_wildcards_and_log():
    failed = [job("train", "logs/b.log", loss="ce", seed="2"), job("aggregate", "logs/a.log")]
    expected = [
        "Failed for good: 2",
        "  aggregate: logs/a.log",
        "  train loss=ce, seed=2: logs/b.log",
        ADVICE,
    ]
    assert report(failed, on_cluster=False).splitlines() == expected


def test_of_a_group_only_jobs_that_had_started_are_named(tmp_path):
    started = tmp_path / "started.log"
    started.touch()
    failed = group(job("dump_logits", str(started), seed="1"), job("calibrate", "logs/never.log", seed="1"))
    assert report([failed], on_cluster=False).splitlines()[:2] == [
        "Failed for good: 1",
        f"  dump_logits seed=1: {started}",
    ]


def test_of_a_group_that_never_started_all_are_named():
    failed = group(job("dump_logits", "logs/a.log"), job("calibrate", "logs/b.log"))
    assert report([failed], on_cluster=False).startswith("Failed for good: 2\n")


def test_job_without_a_log_is_named_all_the_same():
    assert "  plan: no log\n" in report([job("plan", None)], on_cluster=False)


def test_the_last_line_of_its_log_tells_why(tmp_path):
    log = tmp_path / "train.log"
    log.write_text("12:00:00 epoch 1/2\n12:00:01 error: config key 'x' is 1\n\n", encoding="utf-8")
    lines = report([job("train", str(log), seed="1")], on_cluster=False).splitlines()
    assert lines[1:3] == [f"  train seed=1: {log}", "    error: config key 'x' is 1"]


def test_of_very_many_failed_jobs_the_first_are_named():
    lines = report([job(f"rule{n:02}", None) for n in range(25)], on_cluster=False).splitlines()
    assert lines[20:22] == ["  rule19: no log", "  and 5 more"]


def test_nothing_failed_nothing_said():
    assert report([], on_cluster=False) == ""


def test_on_a_cluster_its_own_logs_are_named_too():
    assert report([job("plan", None)], on_cluster=True).splitlines()[-2:] == [ADVICE, CLUSTER_ADVICE]
