"""A run or a submission can never succeed, a node is drained: the rest finishes, and what failed is named."""

import pytest

from tests.slurm.cluster import wait_until
from tests.slurm.project import ClusterProject

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.xdist_group("slurm")]

GOOD, BROKEN = 1, 2


@pytest.fixture(scope="module")
def project(cluster, tmp_path_factory):
    """A project after Snakemake gave up on one run; the node of the other was drained during training."""
    project = ClusterProject.create(tmp_path_factory.mktemp("failing") / "project", cluster, [GOOD, BROKEN])
    project.fit_brake()
    first_import = "import logging\n"
    failure = f"if '\"seed\": {BROKEN}' in ' '.join(sys.argv):\n    sys.exit('this run is broken')\n"
    project.edit("workflow_scripts/train.py", first_import, f"import sys\n\n{failure}{first_import}")
    project.hold(GOOD)
    snakemake = project.start("calibrate_all")
    project.wait_for_training(GOOD)
    node = project.trainings(GOOD)[0]["NodeList"]
    project.cluster.run("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=test")
    try:
        wait_until(lambda: len(project.trainings(BROKEN)) == 4, "the broken run was tried often", seconds=600)
        project.release(GOOD)
        assert snakemake.wait(timeout=600) == 1, project.output()
    finally:
        project.cluster.run("scontrol", "update", f"NodeName={node}", "State=RESUME")
    return project


def test_other_runs_finish(project):
    finished = {path.parent.name for path in (project.root / "results/calibration").rglob("metrics.csv")}
    assert finished == {f"seed{GOOD}"}


def test_report_at_the_end_names_the_run_its_log_and_what_to_do(project):
    report = project.output().partition("Failed for good: 1\n")[2]
    log = f"logs/train/gauss-3/mlp/ce/seed{BROKEN}.log"
    assert report.startswith(f"  train dataset=gauss-3, model=mlp, loss=ce, seed={BROKEN}: {log}\n")
    assert "this run is broken" in (project.root / log).read_text("utf-8")
    assert "start the same command again" in report


def test_broken_run_was_tried_as_often_as_the_profile_says_with_more_memory_each_time(project):
    jobs = project.trainings(BROKEN)
    assert [job["JobState"] for job in jobs] == ["FAILED"] * 4
    assert [job["TRES"].split(",")[1] for job in jobs] == [
        "mem=8000M",
        "mem=16000M",
        "mem=24000M",
        "mem=32000M",
    ]


def test_job_on_a_draining_node_finishes_and_later_ones_go_elsewhere(project):
    (job,) = project.trainings(GOOD)
    assert (job["JobState"], job["Restarts"]) == ("COMPLETED", "0")
    assert job["NodeList"] not in {later["NodeList"] for later in project.trainings(BROKEN)[1:]}


def test_why_slurm_refused_a_submission_is_shown(cluster, tmp_path):
    project = ClusterProject.create(tmp_path / "project", cluster, [GOOD])
    project.set_resources("fetch_data", slurm_partition="nowhere")
    output = project.on_cluster("--until", "fetch_data", "--retries", "0", expect=1)
    (line,) = [line for line in output.splitlines() if line.startswith("failed: fetch_data ")]
    assert "invalid partition specified: nowhere" in line
