"""Published networks: what the collections say, and that a network is fetched, verified and read."""

from workflow_scripts.entry import run as run_entry_point

import io
import json
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest

from focalcal.calibration.files.logits_io import read_logits
from focalcal.common.errors import UserError
from focalcal.common.io import read_json
from focalcal.data import networks
from focalcal.data.network_logits import network_arrays
from tests.published_networks import cached_names, logits_of
from tests.unit.data.conftest import file_entry
from workflow_scripts import import_logits

EVERY = [network for name in networks.collection_names() for network in networks.networks_of(name)]
ALL = [network for network in EVERY if network.base is not None]
CARRIED = [network for network in EVERY if network.base is None]
RNG = np.random.RandomState(0)
LOGITS = RNG.normal(size=(30, 4)).astype(np.float32)
LABELS = RNG.randint(0, 4, 30)


def saved(array):
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


def made_network(server, contents, **changes):
    """Return a network whose files, given by name, a loopback server has."""
    for name, content in contents.items():
        server.add(f"data/{name}", content)
    files = tuple(file_entry(name, content) for name, content in contents.items())
    return replace(ALL[0], files=files, base=f"{server.base}data/", **changes)


@pytest.fixture
def _halves(server, tmp_path, monkeypatch):
    """A collection of one network without validation samples, in its own folder."""
    network = made_network(server, {"pair.p": pickle.dumps((LOGITS, LABELS), 4)})
    (file,) = network.files
    (tmp_path / "mine.toml").write_text(
        f'title = "t"\ndataset = "d"\nseed = 3\nsplit = "halves"\nbase = "{network.base}"\n'
        f'[[networks]]\nmodel = "m"\nloss = "ce"\n'
        f'files = [{{ name = "pair.p", size = {file["size"]}, checksum = "{file["checksum"]}" }}]\n',
        encoding="utf-8",
    )
    monkeypatch.setattr(networks, "NETWORKS_FOLDER", tmp_path)
    monkeypatch.setenv("FOCALCAL_CACHE", str(tmp_path / "cache"))


def test_how_many_networks_there_are():
    counts = {
        name: len(networks.networks_of(name))
        for name in networks.collection_names()
        if not networks.trained_by_us(name)
    }
    assert counts == {
        "chenyaofo-cifar10": 19,
        "chenyaofo-cifar100": 19,
        "dabah2025-cifar10": 2,
        "dabah2025-cifar100": 2,
        "kull2019-cifar10": 2,
        "mukhoti2020-resnet50": 2,
        "llama31-mmlu": 4,
        "mukhoti2020-cifar10": 8,
        "mukhoti2020-cifar100": 4,
    }


@pytest.mark.parametrize("network", ALL, ids=lambda network: network.name)
def test_every_file_has_an_address_at_a_commit_a_size_and_a_checksum(network):
    assert re.fullmatch(r"https://(raw|media)\.githubusercontent\.com/\S+/[0-9a-f]{40}/\S*", network.base)
    assert network.base.endswith("/")
    for file in network.files:
        assert re.fullmatch(r"sha256:[0-9a-f]{64}", file["checksum"])
        assert 0 < file["size"] < 5_000_000
        assert "/" not in file["name"]
    assert (
        network.split == "halves" or any("val" in f["name"] for f in network.files) or len(network.files) == 1
    )


@pytest.mark.parametrize("collection", networks.collection_names())
def test_every_collection_says_where_it_is_from(collection):
    text = (networks.NETWORKS_FOLDER / f"{collection}.toml").read_text("utf-8")
    keys = ("title", "source", "licence", "citation")
    for key in keys if networks.trained_by_us(collection) else (*keys, "base"):
        assert re.search(rf'^{key} = "\S.+"$', text, re.MULTILINE), key
    assert f"`{collection}`" in (networks.NETWORKS_FOLDER / "README.md").read_text("utf-8")


def test_no_two_networks_have_the_same_name_or_stand_for_the_same_run():
    assert len({network.name for network in EVERY}) == len(EVERY)
    runs = [(network.dataset, network.model, network.loss, network.seed) for network in EVERY]
    assert len(set(runs)) == len(runs)


def test_one_network_is_found_by_its_name():
    (found,) = networks.networks_of("chenyaofo-cifar100/resnet20-ce")
    assert (found.dataset, found.model, found.loss, found.split) == ("cifar100", "resnet20", "ce", "halves")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("kull2019-cifar11", r"'published' is \"kull2019-cifar11\"; .*did you mean 'kull2019-cifar10'"),
        ("kull2019-cifar10/resnet-ce", "did you mean 'kull2019-cifar10/resnet110-ce'"),
    ],
)
def test_an_unknown_name_is_refused_with_the_closest_one(name, message):
    with pytest.raises(UserError, match=message):
        networks.networks_of(name)


def test_a_network_is_fetched_once_and_assembled(server, quick, tmp_path):
    arrays = {"val_logits": LOGITS, "val_labels": LABELS}
    arrays |= {"test_logits": LOGITS[:9], "test_labels": LABELS[:9]}
    network = made_network(server, {f"{name}.npy": saved(array) for name, array in arrays.items()})
    for _ in range(2):
        found = network_arrays(network, tmp_path / "cache", quick)
        assert set(found) == set(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array, strict=True)
    assert all(len(route.requests) == 1 for route in server.routes.values())


def test_tables_of_several_files_are_joined_in_their_order(server, quick, tmp_path):
    tables = {"b.csv": b"5,A,B\nB,1,2\n", "a.csv": b"5,A,B\nA,3,4\nB,5,6\n"}
    columns = {"label": "5", "logits": {"A": "A", "B": "B"}}
    found = network_arrays(made_network(server, tables, columns=columns), tmp_path, quick)
    np.testing.assert_array_equal(found["logits"], [[1, 2], [3, 4], [5, 6]])
    np.testing.assert_array_equal(found["labels"], [1, 0, 1])


def test_a_file_of_one_split_says_which(server, quick, tmp_path):
    contents = {name: pickle.dumps((LOGITS[:n], LABELS[:n]), 4) for name, n in (("v.p", 20), ("t.p", 30))}
    network = made_network(server, contents)
    files = [file | {"split": split} for file, split in zip(network.files, ("val", "test"), strict=True)]
    found = network_arrays(replace(network, files=tuple(files)), tmp_path, quick)
    assert {name: len(array) for name, array in found.items()} == {
        "val_logits": 20,
        "val_labels": 20,
        "test_logits": 30,
        "test_labels": 30,
    }


def test_what_is_no_array_is_refused_in_one_line(server, quick, tmp_path):
    network = made_network(server, {"x.p": b"cos\nsystem\n(S'true'\ntR."})
    with pytest.raises(UserError, match=r"x\.p: refused to unpickle: .* not allowed; .*do without") as caught:
        network_arrays(network, tmp_path, quick)
    assert "\n" not in str(caught.value)


def test_offline_the_error_says_where_to_put_the_files_and_how_to_do_without(quick, tmp_path):
    (network,) = networks.networks_of("mukhoti2020-cifar100/resnet50-brier")
    with pytest.raises(UserError) as caught:
        network_arrays(replace(network, base="http://first.invalid/"), tmp_path, quick)
    message = str(caught.value)
    assert "\n" not in message
    assert "networks/mukhoti2020-cifar100/resnet50-brier: no source could serve it" in message
    assert "By hand: put val_logits.npy (2000128 bytes, sha256:e6e86d7d" in message
    assert f"into {tmp_path}/networks/mukhoti2020-cifar100/resnet50-brier and run again" in message
    assert message.endswith("remove 'mukhoti2020-cifar100' from the config key 'published'")


@pytest.mark.parametrize("network", CARRIED, ids=lambda network: network.name)
def test_networks_of_this_project_are_read_from_their_folder(network, tmp_path):
    arrays = network_arrays(network, tmp_path)
    assert not list(tmp_path.iterdir())
    for split in ("val", "test"):
        accuracy = (arrays[f"{split}_logits"].argmax(axis=1) == arrays[f"{split}_labels"]).mean()
        assert accuracy > 0.5


def test_networks_of_this_project_take_at_most_ten_megabytes():
    assert 0 < sum(file["size"] for network in CARRIED for file in network.files) < 10_000_000


@pytest.mark.parametrize(
    ("damage", "message"), [("cut", "has 9 bytes instead of"), ("gone", "does not exist")]
)
def test_a_damaged_network_of_this_project_is_named(damage, message, tmp_path, monkeypatch):
    network = CARRIED[0]
    (file,) = network.files
    monkeypatch.setattr(networks, "NETWORKS_FOLDER", tmp_path)
    network.folder.mkdir()
    if damage == "cut":
        (network.folder / file["name"]).write_bytes(b"truncated")
    with pytest.raises(UserError, match=rf"{re.escape(file['name'])}.*{message}.*git restore"):
        network_arrays(network, tmp_path)


@pytest.mark.usefixtures("_halves")
def test_the_job_writes_each_half_once_as_validation_and_once_as_test(tmp_path):
    (network,) = networks.networks_of("mine")
    written = {}
    for swapped in (False, True):
        spec = {**network.spec, "seed": 3 + swapped, "swapped": swapped}
        logits, record = tmp_path / f"logits{swapped}.npz", tmp_path / "run.json"
        arguments = ["--spec", json.dumps(spec), "--output", str(logits), "--record", str(record)]
        assert run_entry_point(import_logits.main, arguments) == 0
        content = read_json(record)
        assert (content["status"], content["spec"], content["seed"]) == ("ok", spec, 3 + swapped)
        assert content["sizes"] == {"val": 15, "test": 15}
        written[swapped] = read_logits(logits)
    for first, second in (("val", "test"), ("test", "val")):
        one, other = getattr(written[False], first), getattr(written[True], second)
        np.testing.assert_array_equal(one.logits, other.logits, strict=True)
        np.testing.assert_array_equal(one.labels, other.labels, strict=True)
    both = np.concatenate([written[False].val.logits, written[False].test.logits])
    assert {tuple(row) for row in both} == {tuple(row) for row in LOGITS}


@pytest.mark.skipif(not cached_names(), reason="FOCALCAL_CACHE is not set, or has no published network")
def test_the_real_files_are_read():
    """Public networks predict far better than chance, which they would not with labels of other samples."""
    for name in cached_names():
        run = logits_of(name)
        assert (run.test.logits.argmax(axis=1) == run.test.labels).mean() > 0.5, name
