"""A collection of networks that come with focalcal, from the runs that trained them."""

import shutil

import numpy as np
import pytest

from focalcal.common.errors import UserError
from focalcal.common.io import read_json, write_json
from focalcal.data import networks
from focalcal.data.network_logits import network_arrays
from tools import carry
from tools.snapshot import RUN_FACTS

ARRAYS = {
    "val_logits": np.array([[0.1, 1.0], [2.0, -3.0]], np.float32),
    "val_labels": np.array([1, 0]),
    "test_logits": np.array([[5.0, 0.25]], np.float32),
    "test_labels": np.array([0]),
}


@pytest.fixture
def runs(tmp_path):
    """Two finished runs of one dataset and model, and one that has not finished."""
    folder = tmp_path / "results" / "runs" / "d" / "m"
    for loss in ("focal-3", "ce", "brier"):
        (folder / loss / "seed1").mkdir(parents=True)
    record = dict.fromkeys(RUN_FACTS) | {
        "final": {"val_nll": 0.5},
        "provenance": {"git_commit": "abc", "code": {}, "python": "3", "packages": {"numpy": "2"}},
    }
    for loss in ("focal-3", "ce"):
        np.savez(folder / loss / "seed1" / "logits.npz", **ARRAYS)
        write_json(folder / loss / "seed1" / "run.json", record)
    return folder


def test_a_collection_is_read_back_with_rounded_logits(runs, tmp_path, monkeypatch):
    target = tmp_path / "networks"
    target.mkdir()
    assert carry.write_collection(runs, "T", 1, target) == target / "focalcal-d.toml"
    monkeypatch.setattr(networks, "NETWORKS_FOLDER", target)
    found = networks.networks_of("focalcal-d")
    assert [(network.dataset, network.model, network.loss) for network in found] == [
        ("d", "m", "ce"),
        ("d", "m", "focal-3"),
    ]
    shutil.rmtree(runs)
    arrays = network_arrays(found[0], tmp_path / "cache")
    np.testing.assert_array_equal(arrays["val_logits"], [[26 / 256, 1.0], [2.0, -3.0]])
    np.testing.assert_array_equal(arrays["test_labels"], [0])
    assert (target / "focalcal-d" / "runs.csv").read_text("utf-8").count("\n") == 3


def test_runs_of_two_commits_are_refused(runs, tmp_path):
    path = runs / "ce" / "seed1" / "run.json"
    record = read_json(path)
    record["provenance"]["git_commit"] = "other"
    write_json(path, record)
    with pytest.raises(UserError, match=r"commits \['abc', 'other'\]; allowed: one"):
        carry.write_collection(runs, "T", 1, tmp_path)
