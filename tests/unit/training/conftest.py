"""A tiny dataset on disk and the command lines that train on it."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from focalcal.data import prepared

RECIPE = {
    "epochs": 25,
    "batch_size": 16,
    "learning_rate": 0.05,
    "weight_decay": 0.0005,
    "schedule": "one-cycle",
    "threads": 1,
    "device": "cpu",
}


@dataclass(frozen=True)
class TinyRun:
    """Where one run keeps its files, and the arguments of its entry points."""

    data: Path
    folder: Path
    spec: str

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def weights(self) -> Path:
        return self.folder / "weights.safetensors"

    @property
    def history(self) -> Path:
        return self.folder / "history.csv"

    @property
    def record(self) -> Path:
        return self.folder / "run.json"

    @property
    def logits(self) -> Path:
        return self.folder / "logits.npz"

    def train_arguments(self) -> list[str]:
        return [
            *("--spec", self.spec, "--data", str(self.data), "--checkpoint", str(self.checkpoint)),
            *("--weights", str(self.weights), "--history", str(self.history), "--record", str(self.record)),
        ]

    def dump_arguments(self) -> list[str]:
        return [
            *("--spec", self.spec, "--data", str(self.data), "--weights", str(self.weights)),
            *("--output", str(self.logits)),
        ]


@pytest.fixture
def tiny_data(tmp_path):
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 3, 300)
    inputs = (generator.normal(size=(300, 4)) + 2 * np.eye(3, 4)[labels]).astype(np.float32)
    path = tmp_path / "tiny.npz"
    data = prepared.PreparedData(
        inputs,
        labels,
        np.arange(0, 200),
        np.arange(200, 250),
        np.arange(250, 300),
        3,
        np.zeros(4, dtype=np.float32),
        np.ones(4, dtype=np.float32),
        np.full((300, 3), 1 / 3),
    )
    prepared.write_dataset(path, data)
    return path


@pytest.fixture
def tiny_run(tmp_path, tiny_data):
    def make(name="run", loss="ce", seed=1, **changes):
        spec = {
            "dataset": "tiny",
            "model": "mlp",
            "loss": loss,
            "seed": seed,
            "recipe": {**RECIPE, **changes},
        }
        return TinyRun(tiny_data, tmp_path / name, json.dumps(spec))

    return make
