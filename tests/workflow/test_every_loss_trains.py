"""Every family of losses trains for one epoch on digits and on synthetic data, as the workflow trains it."""

import csv
import json

import pytest

from focalcal.config.grid import build_grid
from focalcal.training.catalogue import LOSSES
from tests.project import ROOT, Project, copy_sources, merged_config, tiny_recipe
from workflow_scripts import train

DATASETS = ["digits", "gauss-10"]
NUMBERS = {"gamma": 2, "p0": 0.2, "epsilon": 0.1, "margin": 6, "temperature": 0.04}
LOSS_IDS = [
    *(
        f"{name}-7-0.15-4" if kind.has_steps else f"{name}-{NUMBERS[kind.number]}" if kind.number else name
        for name, kind in LOSSES.items()
    ),
    "focal-2+ls-0.1",
]
BY_SNAKEMAKE = ["ce", "flsd-7-0.15-4", "poly-0.1"]
"""To start Python takes longer than such a training, so the others train in the process of the test."""


def configured(config, losses):
    """Put one run of one epoch per dataset and loss into a configuration."""
    block = {"datasets": DATASETS, "models": ["mlp"], "losses": losses, "seeds": [1], "recipe": "tiny"}
    config["runs"] = [block]
    config["recipes"] = {"tiny": {**tiny_recipe(), "epochs": 1, "snapshot_epochs": []}}
    config["datasets"] = {"gauss-10": {"sizes": {"train": 200, "val": 100, "test": 100}}}
    return config


def weights():
    """Return the models that Snakemake trains, as targets."""
    return [
        f"results/runs/{dataset}/mlp/{loss}/seed1/weights.safetensors"
        for dataset in DATASETS
        for loss in BY_SNAKEMAKE
    ]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project in which Snakemake has trained some of the losses."""
    project = Project(tmp_path_factory.mktemp("losses") / "project")
    copy_sources(project.root)
    project.configure(lambda config: configured(config, BY_SNAKEMAKE))
    project.snakemake(*weights())
    return project


def check_run(folder):
    """Check that a training succeeded with a sensible loss."""
    assert json.loads((folder / "run.json").read_text("utf-8"))["status"] == "ok"
    with (folder / "history.csv").open(encoding="utf-8", newline="") as source:
        (row,) = csv.DictReader(source)
    assert 0 < float(row["train_loss"]) < 100


def test_snakemake_trains_a_loss_of_each_file(project):
    for target in weights():
        check_run((project.root / target).parent)


def test_an_edited_loss_trains_only_the_runs_of_its_file_again(project, tmp_path):
    edited = project.copy(tmp_path / "project")
    edited.edit("focalcal/training/losses_after_m20.py", "MBLS_WEIGHT = 0.1", "MBLS_WEIGHT = 0.2")
    assert edited.planned(*weights()) == {"train": len(DATASETS)}


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_loss_trains(project, dataset, tmp_path):
    grid = build_grid(configured(merged_config(), LOSS_IDS), ROOT)
    for run in grid:
        if run.dataset == dataset:
            folder = tmp_path / run.loss
            spec = json.dumps(grid.training_spec(run))
            data = project.root / "results" / "data" / f"{dataset}.npz"
            files = {"weights": "weights.safetensors", "history": "history.csv", "record": "run.json"}
            outputs = [f"--{name}={folder / file}" for name, file in files.items()]
            train.main([f"--spec={spec}", f"--data={data}", f"--checkpoint={tmp_path / 'point'}", *outputs])
            check_run(folder)
