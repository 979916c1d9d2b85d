"""Runs that are disturbed during training end complete and correct without intervention."""

import pytest
from safetensors.numpy import load_file

from tests.slurm.conftest import (
    CANCELLED,
    CRASHED,
    DISTURBED,
    OUT_OF_MEMORY,
    OUT_OF_TIME,
    PREEMPTED,
    WARNED,
    WITHOUT_DAEMON,
)
from tests.slurm.project import BATCHES

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.xdist_group("slurm")]


@pytest.fixture(scope="module")
def undisturbed(disturbed, local):
    """The same runs, trained undisturbed on this machine."""
    return local(disturbed, "--until", "train")


@pytest.mark.parametrize("seed", DISTURBED)
def test_disturbed_run_has_the_weights_of_an_undisturbed_one(disturbed, undisturbed, seed):
    path = disturbed.run_folder(seed).relative_to(disturbed.root) / "weights.safetensors"
    assert (disturbed.root / path).read_bytes() == (undisturbed / path).read_bytes()
    assert load_file(disturbed.root / path)


def test_cancelled_job_is_submitted_again_and_goes_on(disturbed):
    assert disturbed.states(CANCELLED) == ["CANCELLED", "COMPLETED"]
    assert disturbed.batches(CANCELLED) == BATCHES


def test_job_killed_for_memory_is_submitted_again_with_more(disturbed):
    first, second = disturbed.trainings(OUT_OF_MEMORY)
    assert first["JobState"] != "COMPLETED"
    assert "mem=300M" in first["TRES"]
    assert second["JobState"] == "COMPLETED"
    assert "mem=4000M" in second["TRES"]


def test_training_longer_than_the_limit_goes_on_in_further_jobs(disturbed):
    assert disturbed.states(OUT_OF_TIME) == ["TIMEOUT", "TIMEOUT", "COMPLETED"]
    assert disturbed.batches(OUT_OF_TIME) == BATCHES


def test_signal_before_the_limit_ends_the_job_with_a_checkpoint(disturbed):
    assert disturbed.states(WARNED) == ["FAILED", "COMPLETED"]
    assert disturbed.batches(WARNED) == BATCHES


def test_job_outlives_its_nodes_daemon(disturbed):
    (job,) = disturbed.trainings(WITHOUT_DAEMON)
    assert (job["JobState"], job["Restarts"]) == ("COMPLETED", "0")
    assert disturbed.batches(WITHOUT_DAEMON) == BATCHES


def test_job_of_a_crashed_node_is_restarted_by_slurm(disturbed):
    (job,) = disturbed.trainings(CRASHED)
    assert (job["JobState"], job["Restarts"]) == ("COMPLETED", "1")


def test_preempted_job_is_restarted_by_slurm_and_goes_on(disturbed):
    (job,) = disturbed.trainings(PREEMPTED)
    assert (job["JobState"], job["Restarts"]) == ("COMPLETED", "1")
    assert disturbed.batches(PREEMPTED) == BATCHES


def test_no_checkpoint_is_left(disturbed):
    assert list((disturbed.root / "results" / "checkpoints").rglob("*.safetensors")) == []
