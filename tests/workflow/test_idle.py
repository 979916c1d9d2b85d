"""Where Snakemake has nothing to do, the run says whether the results belong to the configuration."""

import os
import shutil
import time

import pytest

FITS = "results/calibration/gauss-3/mlp/ce/seed1/fits.json"
LOGITS = "results/runs/gauss-3/mlp/focal-2/seed2/logits.npz"
READ_BY_NO_JOB = "results/theory/gamma_star.csv"


def idle(project, *arguments, expect=0):
    """Return what a run with nothing to do said."""
    said = project.snakemake(*arguments, expect=expect)
    assert "Nothing to be done" in said
    return said


def lose_notes(project):
    """Let Snakemake forget how products were made; an entry of something else stays."""
    shutil.rmtree(project.root / ".snakemake" / "metadata")
    (project.root / ".snakemake" / "metadata").mkdir()
    (project.root / ".snakemake" / "metadata" / "b3RoZXI=").write_text("{}")


def test_results_that_belong_are_said_to(project):
    assert "results belongs to this configuration: " in idle(project)
    assert " files are what their steps wrote" in idle(project, "calibrate_all")


@pytest.mark.parametrize(
    ("section", "key", "named", "again"),
    [
        ("calibration", "bins", "its calibration settings differ in bins", "calibrate"),
        ("recovery", "bins", "its recovery settings differ in bins", "recover"),
        ("report", "title", "made with other settings, which differ in report.title", "collect"),
        ("theory", "max_logit", "made with other settings, which differ in theory", "collect theory_tables"),
    ],
)
def test_another_configuration_is_named_although_snakemake_forgot_its_own(
    project, section, key, named, again
):
    lose_notes(project)
    project.configure(lambda config: config[section].update({key: "Another" if key == "title" else 7}))
    said = idle(project, expect=2)
    assert named in said
    assert f"add `--forcerun {again}" in said
    assert "The report:" not in said


def test_results_of_another_configuration_in_their_place_are_named(finished_project, tmp_path):
    project = finished_project.copy(tmp_path / "project")
    project.configure(lambda config: config["calibration"].update(bins=7))
    project.snakemake("calibrate_all")
    shutil.rmtree(project.root / "results")
    shutil.copytree(
        finished_project.root / "results", project.root / "results", copy_function=shutil.copyfile
    )
    said = idle(project, "calibrate_all", expect=2)
    assert "its calibration settings differ in bins" in said
    assert "add `--forcerun calibrate` to the same command" in said
    assert project.planned("calibrate_all", "--forcerun", "calibrate")["calibrate"] == 4


def test_missing_and_damaged_intermediates_are_named_within_two_seconds(project):
    (project.root / LOGITS).unlink()
    path = project.root / FITS
    content, times = bytearray(path.read_bytes()), path.stat()
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    start = time.monotonic()
    project.snakemake("report_all", "-n")
    planning = time.monotonic() - start
    start = time.monotonic()
    said = idle(project, "report_all", expect=2)
    assert time.monotonic() - start < planning + 2
    assert f"error: {FITS} is not what `calibrate` wrote (checksum)" in said
    path.unlink()
    said = idle(project, "report_all", expect=2)
    for name in (FITS, LOGITS):
        assert f"{name} is missing; `snakemake --cores all` with its name makes it again" in said


def test_files_that_no_job_reads_are_looked_at_too(project):
    path = project.root / READ_BY_NO_JOB
    content, times = path.read_bytes(), path.stat()
    path.write_bytes(content[:-1])
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    said = idle(project, expect=2)
    assert f"error: {READ_BY_NO_JOB} is not what `theory_tables` wrote (checksum)" in said
