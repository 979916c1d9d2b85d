"""The small grid on a cluster: the results of a local run, with the resources that the profile requests."""

import csv
import json
from itertools import pairwise

import pytest

from tests.project import TINY, make_tiny
from tests.slurm.cluster import GPUS
from tests.slurm.project import ClusterProject

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.xdist_group("slurm")]

(GRID,) = TINY["runs"]
RUNS = [(loss, seed) for loss in GRID["losses"] for seed in GRID["seeds"]]


@pytest.fixture(scope="module")
def finished(cluster, tmp_path_factory):
    """The small project after a complete run on the cluster."""
    project = ClusterProject.create(tmp_path_factory.mktemp("grid") / "project", cluster)
    project.configure(make_tiny)
    project.on_cluster("all")
    return project


def test_outputs_are_bit_identical_to_a_local_run(finished, finished_project):
    here = finished_project.root
    compared = [
        path.relative_to(here)
        for pattern in ("*.npz", "*.safetensors", "fits.json", "metrics.csv", "scores.csv")
        for path in sorted((here / "results").rglob(pattern))
    ]
    assert {path.name for path in compared} >= {"weights.safetensors", "logits.npz", "metrics.csv"}
    assert len([path for path in compared if path.name == "logits.npz"]) == len(RUNS)
    different = [
        str(path) for path in compared if (here / path).read_bytes() != (finished.root / path).read_bytes()
    ]
    assert different == []


def test_each_record_names_the_job_that_trained_the_run(finished):
    for loss, seed in RUNS:
        record = json.loads((finished.run_folder(seed, loss) / "run.json").read_text("utf-8"))
        (job,) = finished.trainings(seed, loss)
        assert record["provenance"]["slurm_job_id"] == job["JobId"]
        assert job["JobState"] == "COMPLETED"


def test_training_asks_for_one_gpu_and_nothing_else_for_any(finished):
    for job in finished.jobs():
        is_training = job["Comment"].startswith("rule_train_")
        assert job.get("TresPerJob") == ("gres:gpu:1" if is_training else None), job["Comment"]


def test_no_node_runs_more_trainings_than_it_has_gpus(finished):
    trainings = [job for loss, seed in RUNS for job in finished.trainings(seed, loss)]
    assert len(trainings) > GPUS["gpu1"] + GPUS["gpu2"]
    for node in ("gpu1", "gpu2"):
        assert GPUS[node] == 1
        spans = sorted((job["StartTime"], job["EndTime"]) for job in trainings if job["NodeList"] == node)
        assert spans
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_small_jobs_of_a_run_share_one_submission(finished):
    submitted = [job["Comment"].removeprefix("rule_").split("_wildcards_")[0] for job in finished.jobs()]
    assert len([name for name in submitted if name.startswith("run_")]) == len(RUNS)
    assert not {"dump_logits", "calibrate", "recommend"} & set(submitted)


def test_no_submission_asks_for_cpus_that_it_cannot_use(finished):
    assert {job["NumCPUs"] for job in finished.jobs()} == {"1"}


def test_table_holds_every_run(finished):
    with (finished.root / "results" / "tables" / "metrics.csv").open(encoding="utf-8", newline="") as file:
        found = {(row["loss"], int(row["seed"])) for row in csv.DictReader(file)}
    assert found == set(RUNS)


def test_second_start_has_nothing_to_do(finished):
    before = len(finished.jobs())
    assert "Nothing to be done" in finished.on_cluster("all")
    assert len(finished.jobs()) == before
