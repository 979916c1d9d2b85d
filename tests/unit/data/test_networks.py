"""Published networks: what is shipped is what was published, and the rest is fetched."""

from workflow_scripts.entry import run as run_entry_point

import json
from dataclasses import replace

import numpy as np
import pytest

from focalcal.common.errors import UserError
from focalcal.common.io import read_json
from focalcal.data import networks
from focalcal.data.network_logits import network_arrays, npy_checksum
from workflow_scripts import import_logits

COLLECTIONS = ("kull2019-cifar10", "mukhoti2020-cifar10", "mukhoti2020-cifar100")
ALL = [network for name in COLLECTIONS for network in networks.networks_of(name)]
SHIPPED = [network for network in ALL if network.base is None]
FETCHED = next(network for network in ALL if network.base is not None)
SHAPES = {
    "val_logits": ((5000, 10), np.float32),
    "val_labels": ((5000,), np.int64),
    "test_logits": ((10000, 10), np.float32),
    "test_labels": ((10000,), np.int64),
}


def made_network(server, tmp_path):
    """Return a fetched network with made logits of the official shapes and 100 classes, and its arrays."""
    rng = np.random.default_rng(0)
    arrays = {}
    for split, count in (("val", 5000), ("test", 10000)):
        arrays[f"{split}_logits"] = rng.normal(size=(count, 100)).astype(np.float32)
        arrays[f"{split}_labels"] = rng.integers(0, 100, count)
    files = []
    for name, array in arrays.items():
        path = tmp_path / f"{name}.npy"
        np.save(path, array)
        server.add(f"data/net/{path.name}", path.read_bytes())
        files.append({"name": path.name, "size": path.stat().st_size, "checksum": npy_checksum(array)})
    return replace(FETCHED, files=tuple(files), base=f"{server.base}data/net/"), arrays


@pytest.mark.parametrize("network", SHIPPED, ids=lambda network: network.name)
def test_shipped_arrays_are_the_published_ones(network, tmp_path):
    """The arrays, saved again with np.save, have the checksums and sizes of the original files."""
    arrays = network_arrays(network, tmp_path)
    assert {name: (array.shape, array.dtype) for name, array in arrays.items()} == SHAPES
    for file in network.files:
        np.save(tmp_path / file["name"], arrays[file["name"].removesuffix(".npy")])
        assert (tmp_path / file["name"]).stat().st_size == file["size"]


def test_cifar10_networks_have_the_same_test_labels_in_the_same_order():
    labels = {network.spec["checksums"]["test_labels.npy"] for network in SHIPPED}
    assert len(labels) == 1
    counts = np.bincount(network_arrays(SHIPPED[0], networks.NETWORKS_FOLDER)["test_labels"])
    assert counts.tolist() == [1000] * 10


def test_a_damaged_file_is_refused(tmp_path, monkeypatch):
    arrays = network_arrays(SHIPPED[0], tmp_path)
    arrays["val_logits"][0, 0] += 1
    monkeypatch.setattr(networks, "NETWORKS_FOLDER", tmp_path)
    np.savez(SHIPPED[0].shipped_file, **arrays)
    with pytest.raises(UserError, match=r"val_logits is not the published array; .*git checkout"):
        network_arrays(SHIPPED[0], tmp_path)


def test_a_network_is_fetched_once_and_assembled(server, quick, tmp_path):
    network, arrays = made_network(server, tmp_path)
    for _ in range(2):
        found = network_arrays(network, tmp_path / "cache", quick)
        assert set(found) == set(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array, strict=True)
    assert all(len(route.requests) == 1 for route in server.routes.values())


def test_offline_the_error_says_where_to_put_the_files_and_how_to_do_without(quick, tmp_path):
    network = replace(FETCHED, base="http://first.invalid/")
    with pytest.raises(UserError) as caught:
        network_arrays(network, tmp_path, quick)
    message = str(caught.value)
    assert "\n" not in message
    assert "networks/mukhoti2020-cifar100/resnet50-brier: no source could serve it" in message
    assert "By hand: put val_logits.npy (2000128 bytes, sha256:e6e86d7d" in message
    assert f"into {tmp_path}/networks/mukhoti2020-cifar100/resnet50-brier and run again" in message
    assert message.endswith("remove 'mukhoti2020-cifar100' from the config key 'published'")


def test_the_job_writes_logits_and_record_of_a_shipped_network(tmp_path):
    spec = SHIPPED[0].spec
    logits, record = tmp_path / "logits.npz", tmp_path / "run.json"
    arguments = ["--spec", json.dumps(spec), "--output", str(logits), "--record", str(record)]
    assert run_entry_point(import_logits.main, arguments) == 0
    with np.load(logits) as written:
        assert {name: npy_checksum(written[name]) for name in written.files} == {
            name.removesuffix(".npy"): checksum for name, checksum in spec["checksums"].items()
        }
    content = read_json(record)
    assert (content["status"], content["spec"]) == ("ok", spec)
    assert f"sha256:{content['data_checksum']}" == spec["checksums"]["test_logits.npy"]
    assert content["sizes"] == {"val": 5000, "test": 10000}
