import pytest

from focalcal.common.errors import UserError
from focalcal.snakemake_shim import orphaned_jobs


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Return a function that puts a `squeue` that prints the given lines on the path."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def install(*jobs, then="exit 0"):
        lines = tmp_path / "queue"
        lines.write_text("".join("\t".join(job) + "\n" for job in jobs), encoding="utf-8")
        (tmp_path / "squeue").write_text(f"#!/bin/sh\ncat {lines}\n{then}\n", encoding="utf-8")
        (tmp_path / "squeue").chmod(0o755)

    return install


def test_jobs_that_snakemake_submitted_from_the_folder_are_refused_by_name(slurm, tmp_path):
    folder, link = tmp_path / "my project", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder)
    slurm(
        ("7", "RUNNING", "focalcal_1234", str(folder), "rule_train_wildcards_cifar10_resnet50_ce_1"),
        ("8", "PENDING", "focalcal_1234", str(link), "rule_run_calibrate_dump_logits"),
        ("9", "RUNNING", "focalcal_5678", str(tmp_path), "rule_train_wildcards_cifar10_resnet50_ce_1"),
        ("10", "RUNNING", "notebook", str(folder), ""),
    )
    with pytest.raises(UserError) as caught:
        orphaned_jobs.refuse(folder)
    message = str(caught.value)
    assert "\n" not in message
    assert "7 (train cifar10 resnet50 ce 1, running), 8 (run_calibrate_dump_logits, pending); " in message
    assert "`scancel 7 8`" in message
    orphaned_jobs.refuse(tmp_path / "elsewhere")


def test_without_slurm_there_are_none(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    orphaned_jobs.refuse(tmp_path)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("then", "reason"), [("echo no controller >&2; exit 1", "no controller"), ("sleep 5", "timed out")]
)
def test_a_line_says_if_slurm_does_not_answer_where_it_was_used(
    slurm, tmp_path, capsys, monkeypatch, then, reason
):
    monkeypatch.setattr(orphaned_jobs, "SECONDS_TO_ANSWER", 0.2)
    slurm(then=then)
    orphaned_jobs.refuse(tmp_path)
    assert capsys.readouterr().err == ""
    (tmp_path / orphaned_jobs.LOGS).mkdir(parents=True)
    orphaned_jobs.refuse(tmp_path)
    line = capsys.readouterr().err
    assert line.startswith("warning: jobs of an earlier Snakemake were not looked for: ")
    assert reason in line
    assert line.count("\n") == 1
