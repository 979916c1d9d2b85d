"""Every family of losses trains for one epoch on digits and on synthetic data as the workflow trains it."""

import csv
import json

import pytest

from focalcal.config.grid import build_grid
from focalcal.data.prepare import prepare_dataset
from focalcal.data.prepared import write_dataset
from focalcal.training.catalogue import LOSSES
from tests.project import ROOT, merged_config, tiny_recipe
from tests.unit.training.conftest import TinyRun
from workflow_scripts import train

NUMBERS = {"gamma": 2, "p0": 0.2, "epsilon": 0.1, "margin": 6, "temperature": 0.04}
LOSS_IDS = [
    *(
        f"{name}-7-0.15-4" if kind.has_steps else f"{name}-{NUMBERS[kind.number]}" if kind.number else name
        for name, kind in LOSSES.items()
    ),
    "focal-2+ls-0.1",
]


@pytest.mark.parametrize("dataset", ["digits", "gauss-10"])
def test_every_loss_trains(dataset, tmp_path):
    config = merged_config()
    block = {"datasets": [dataset], "models": ["mlp"], "losses": LOSS_IDS, "seeds": [1], "recipe": "tiny"}
    config["runs"], config["published"] = [block], []
    config["recipes"] = {"tiny": {**tiny_recipe(), "epochs": 1, "snapshot_epochs": []}}
    config["datasets"] = {"gauss-10": {"sizes": {"train": 200, "val": 100, "test": 100}}}
    grid = build_grid(config, ROOT)
    data = tmp_path / "data.npz"
    write_dataset(data, prepare_dataset(grid.data_spec(dataset), tmp_path).data)
    for trained in grid:
        run = TinyRun(data, tmp_path / trained.loss, json.dumps(grid.training_spec(trained)))
        train.main(run.train_arguments())
        assert json.loads(run.record.read_text("utf-8"))["status"] == "ok"
        with run.history.open(encoding="utf-8", newline="") as source:
            (row,) = csv.DictReader(source)
        assert 0 < float(row["train_loss"]) < 100, trained.loss
