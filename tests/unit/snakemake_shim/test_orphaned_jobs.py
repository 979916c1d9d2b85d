import pytest

from focalcal.common.errors import UserError
from focalcal.snakemake_shim import orphaned_jobs
from focalcal.snakemake_shim.orphaned_jobs import OrphanedJob
from workflow_scripts import orphaned_jobs as entry_point


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Return a function that puts a `squeue` with the given lines, and a recording `scancel`, on the path."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")

    def install(*jobs, code=0, looks=1000):
        """Jobs leave the queue after so many looks at it."""
        queue, noted = tmp_path / "queue", tmp_path / "looks"
        queue.write_text("".join("\t".join(job) + "\n" for job in jobs), encoding="utf-8")
        write(
            programs / "squeue",
            f"printf . >> {noted}; [ $(wc -c < {noted}) -gt {looks} ] || cat {queue}\n"
            f"echo no controller >&2; exit {code}",
        )
        write(programs / "scancel", f'echo "$@" > {tmp_path}/cancelled; : > {queue}')
        return tmp_path

    def write(path, body):
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        path.chmod(0o755)

    return install


def test_finds_only_jobs_that_snakemake_submitted_from_the_folder(slurm, tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    slurm(
        ("7", "RUNNING", "focalcal_1234", str(folder), "rule_train_wildcards_cifar10_resnet50_ce_1"),
        ("8", "PENDING", "focalcal_1234", str(folder), "rule_run_calibrate_dump_logits"),
        ("9", "RUNNING", "focalcal_5678", str(tmp_path), "rule_train_wildcards_cifar10_resnet50_ce_1"),
        ("10", "RUNNING", "notebook", str(folder), ""),
    )
    assert orphaned_jobs.find(folder) == [
        OrphanedJob("7", "RUNNING", "train cifar10 resnet50 ce 1"),
        OrphanedJob("8", "PENDING", "run_calibrate_dump_logits"),
    ]


def test_a_link_to_the_folder_is_the_folder(slurm, tmp_path):
    folder, link = tmp_path / "project", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder)
    slurm(("7", "RUNNING", "focalcal_1", str(link), "rule_aggregate"))
    assert orphaned_jobs.find(folder) == [OrphanedJob("7", "RUNNING", "aggregate")]


def test_without_slurm_there_are_none(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert orphaned_jobs.find(tmp_path) == []


def test_slurm_that_does_not_answer_is_an_error_not_an_empty_queue(slurm, tmp_path):
    slurm(code=1)
    with pytest.raises(UserError, match="'squeue' failed: no controller; try again when SLURM answers"):
        orphaned_jobs.find(tmp_path)


def test_slurm_that_hangs_is_an_error_too(slurm, tmp_path, monkeypatch):
    slurm()
    (tmp_path / "bin" / "squeue").write_text("#!/bin/sh\nexec sleep 60\n", encoding="utf-8")
    monkeypatch.setattr(orphaned_jobs, "SECONDS_TO_ANSWER", 0.2)
    with pytest.raises(UserError, match=r"'squeue' did not answer in 0\.2 s; try again when SLURM does"):
        orphaned_jobs.find(tmp_path)


def test_refusal_names_the_jobs_and_both_ways_out(slurm, tmp_path):
    """The commands are for the clone; with `--directory`, the folder of the jobs is another one."""
    folder = tmp_path / "my results"
    slurm(("7", "RUNNING", "focalcal_1", str(folder), "rule_train_wildcards_digits_mlp_ce_1"))
    with pytest.raises(UserError) as refusal:
        orphaned_jobs.refuse(folder)
    message = str(refusal.value)
    assert f"earlier Snakemake in '{folder}'" in message
    assert "7 (train digits mlp ce 1, running)" in message
    for choice in ("--wait", "--cancel"):
        assert f"`python -m workflow_scripts.orphaned_jobs {choice} --directory '{folder}'`" in message


def test_nothing_is_refused_with_an_empty_queue(slurm, tmp_path):
    slurm()
    assert orphaned_jobs.find(tmp_path) == []
    orphaned_jobs.refuse(tmp_path)


def test_command_lists_without_touching_anything(slurm, tmp_path, capsys):
    slurm(("7", "RUNNING", "focalcal_1", str(tmp_path), "rule_aggregate"))
    entry_point.main(["--directory", str(tmp_path)])
    assert capsys.readouterr().out == "7 (aggregate, running)\n"
    assert not (tmp_path / "cancelled").exists()


def test_command_cancels_and_says_what_comes_next(slurm, tmp_path, capsys):
    jobs = [(job_id, "RUNNING", "focalcal_1", str(tmp_path), "rule_aggregate") for job_id in ("7", "8")]
    slurm(*jobs)
    entry_point.main(["--directory", str(tmp_path), "--cancel", "--interval", "0"])
    assert (tmp_path / "cancelled").read_text("utf-8") == "7 8\n"
    assert capsys.readouterr().out.splitlines()[2:] == [
        f"No job of an earlier Snakemake in {tmp_path} is left.",
        "Next: add --unlock to its command, then start it as before.",
    ]


def test_command_with_an_empty_queue_cancels_nothing(slurm, tmp_path, capsys):
    slurm()
    entry_point.main(["--directory", str(tmp_path), "--cancel"])
    assert not (tmp_path / "cancelled").exists()
    assert capsys.readouterr().out.startswith(f"No job of an earlier Snakemake in {tmp_path} is left.")


def test_waiting_ends_when_the_queue_is_empty(slurm, tmp_path):
    slurm(("7", "RUNNING", "focalcal_1", str(tmp_path), "rule_aggregate"), looks=2)
    orphaned_jobs.wait(tmp_path, 0)
    assert (tmp_path / "looks").read_text("utf-8") == "..."
    assert orphaned_jobs.find(tmp_path) == []
