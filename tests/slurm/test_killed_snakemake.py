"""Snakemake is killed while jobs run and then restarted: no job is lost, duplicated or repeated."""

import pytest

from tests.slurm.cluster import wait_until
from tests.slurm.project import BATCHES, ClusterProject

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.xdist_group("slurm")]

WAITED_FOR, STOPPED, RUNNING, NOT_SUBMITTED = 1, 2, 3, 4
"""Seeds of orphaned jobs that finish or are cancelled, and of runs around a SIGTERM."""


@pytest.fixture(scope="module")
def project(cluster, tmp_path_factory):
    """A project with a training run that is paused after its first batch."""
    project = ClusterProject.create(tmp_path_factory.mktemp("killed") / "project", cluster, [WAITED_FOR])
    project.fit_brake()
    return project


def kill_snakemake_while_training(project, seed):
    project.set_seeds(seed)
    project.hold(seed)
    snakemake = project.start("--until", "train")
    project.wait_for_training(seed)
    snakemake.kill()
    snakemake.wait()


def test_survivor_that_finishes_is_not_repeated(project):
    kill_snakemake_while_training(project, WAITED_FOR)
    (job,) = project.trainings(WAITED_FOR)

    locked = project.on_cluster("--until", "train", expect=1)
    assert "--unlock" in locked
    project.on_cluster("--unlock")
    refused = project.on_cluster("--until", "train", expect=2)
    assert f"{job['JobId']} (train gauss-3 mlp ce {WAITED_FOR}, running)" in refused
    assert f"`scancel {job['JobId']}`" in refused
    assert project.states(WAITED_FOR) == ["RUNNING"]

    project.release(WAITED_FOR)
    wait_until(lambda: project.states(WAITED_FOR) == ["COMPLETED"], "the job that was left ends")
    project.on_cluster("--until", "train")
    assert project.states(WAITED_FOR) == ["COMPLETED"]
    assert project.batches(WAITED_FOR) == BATCHES


def test_cancelled_survivor_goes_on_from_its_checkpoint(project):
    kill_snakemake_while_training(project, STOPPED)
    (job,) = project.trainings(STOPPED)
    project.cluster.run("scancel", job["JobId"])
    wait_until(lambda: project.states(STOPPED) == ["CANCELLED"], "the job that was left is cancelled")
    project.release(STOPPED)
    project.on_cluster("--unlock")
    project.on_cluster("--until", "train")
    assert project.states(STOPPED) == ["CANCELLED", "COMPLETED"]
    assert project.batches(STOPPED) == BATCHES


def test_terminated_snakemake_waits_for_running_jobs_and_the_next_does_the_rest(project):
    project.set_seeds(RUNNING, NOT_SUBMITTED)
    project.hold(RUNNING, NOT_SUBMITTED)
    snakemake = project.start("--until", "train", "--jobs", "1")
    wait_until(lambda: project.batches(RUNNING) or project.batches(NOT_SUBMITTED), "one trains", seconds=600)
    first, second = sorted((RUNNING, NOT_SUBMITTED), key=project.batches, reverse=True)
    snakemake.terminate()
    wait_until(lambda: "Will exit after finishing" in project.output(), "Snakemake hears the signal")
    assert snakemake.poll() is None
    project.release(first, second)
    assert snakemake.wait(timeout=600) == 1
    assert (project.states(first), project.states(second)) == (["COMPLETED"], [])

    project.on_cluster("--until", "train")
    assert (project.states(first), project.states(second)) == (["COMPLETED"], ["COMPLETED"])
    assert project.batches(first) == project.batches(second) == BATCHES
