"""A table with its own split for each seed, through the workflow."""

import re

import numpy as np
import pytest

from focalcal.data import registry
from focalcal.data.prepare import prepare_dataset
from tests.project import Project, copy_sources, tiny_recipe

RUNS = [f"results/runs/iris/mlp/ce/seed{seed}" for seed in (1, 2)]


@pytest.fixture
def iris(tmp_path):
    """Return a project that trains on two splits of iris."""
    copy_sources(tmp_path / "project")
    project = Project(tmp_path / "project")

    def configure(config):
        block = {"datasets": ["iris"], "models": ["mlp"], "losses": ["ce"], "seeds": [1, 2], "recipe": "tiny"}
        config |= {"published": [], "runs": [block], "recipes": {"tiny": tiny_recipe()}}

    project.configure(configure)
    return project


def test_each_seed_has_its_split_and_a_forced_run_gives_the_same_bytes(iris, tmp_path):
    wanted = [f"{run}/logits.npz" for run in RUNS]
    iris.snakemake(*wanted)
    whole = prepare_dataset(registry.job_spec("iris"), tmp_path / "cache").data
    for seed, path in zip((1, 2), wanted, strict=True):
        part = whole.for_seed(seed)
        with np.load(iris.root / path) as arrays:
            for split in ("val", "test"):
                np.testing.assert_array_equal(arrays[f"{split}_labels"], part.labels[part.indices(split)])
    assert not np.array_equal(whole.for_seed(1).test_indices, whole.for_seed(2).test_indices)
    log = (iris.root / "logs/train/iris/mlp/ce/seed1.log").read_text("utf-8")
    assert re.search(r"epoch +2", log), log
    files = [iris.root / run / name for run in RUNS for name in ("weights.safetensors", "logits.npz")]
    first = [file.read_bytes() for file in files]
    assert iris.planned(*wanted) == {}
    iris.snakemake("--forcerun", "train", "--", *wanted)
    assert [file.read_bytes() for file in files] == first
