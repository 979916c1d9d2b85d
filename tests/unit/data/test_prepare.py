"""From a spec to the prepared file: a small version of every dataset through the real entry points."""

from workflow_scripts.entry import run

import csv
import json

import numpy as np
import pytest
from PIL import Image

from focalcal.common.checksums import checksum
from focalcal.data import inspection, prepared, registry, splits
from tests.unit.data import official_formats as formats
from tests.unit.data.conftest import file_entry
from workflow_scripts import fetch_data, inspect_data


def run_fetch(spec, folder):
    """Return the data and the record that the entry point writes."""
    output, record = folder / "d.npz", folder / "d.json"
    arguments = ["--spec", json.dumps(spec), "--cache", str(folder / "cache")]
    fetch_data.main([*arguments, "--output", str(output), "--record", str(record)])
    return prepared.load_dataset(output), json.loads(record.read_text())


def small_spec(name, train, test, validation, files, base, **parameters):
    """Return the spec of a small version of an official dataset, served from `base`."""
    spec = registry.job_spec(name)
    entry = {**spec["entry"], "counts": {"train": train, "test": test}, "files": files}
    entry["sources"] = [{"kind": "http", "base": base}]
    return {
        **spec,
        "entry": entry,
        "parameters": {**spec["parameters"], "validation": validation, **parameters},
    }


@pytest.mark.parametrize("name", ["gauss-3", "gauss-10", "digits"])
def test_embedded_datasets(name, tmp_path):
    sizes = {"train": 50, "val": 30, "test": 40}
    spec = registry.job_spec(name, {"sizes": sizes, "seed": 3})
    data, record = run_fetch(spec, tmp_path)
    assert record["dataset"] == name
    assert record["checksum"] == checksum(tmp_path / "d.npz")
    assert record["split_checksum"] == prepared.split_checksum(data)
    assert record["sizes"] == sizes
    assert record["classes"] == spec["entry"]["classes"] == len(record["class_names"])
    assert record["class_counts"] == prepared.class_counts(data)
    assert record["input_shape"] == spec["entry"]["shape"]
    assert record["posterior_known"] == name.startswith("gauss")
    assert record["spec"] == spec
    assert not (tmp_path / "cache").exists()


def idx_files(server, train, test):
    random = np.random.RandomState(0)
    names = [
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte",
    ]
    arrays = [
        random.randint(0, 256, (train, 28, 28)),
        np.arange(train) % 10,
        random.randint(0, 256, (test, 28, 28)),
        np.arange(test) % 10,
    ]
    contents = [formats.idx(array.astype(np.uint8)) for array in arrays]
    for name, content in zip(names, contents, strict=True):
        server.add(name, content)
    return arrays, [file_entry(name, content) for name, content in zip(names, contents, strict=True)]


def test_an_idx_dataset(server, tmp_path):
    arrays, files = idx_files(server, 60, 20)
    data, record = run_fetch(small_spec("mnist", 60, 20, 6, files, server.base), tmp_path)
    assert record["sizes"] == {"train": 54, "val": 6, "test": 20}
    assert record["source"] == server.base
    train, val = splits.shuffled_validation(60, 6, 1)
    np.testing.assert_array_equal(data.val_indices, val)
    np.testing.assert_array_equal(data.train_indices, train)
    np.testing.assert_array_equal(data.inputs[data.test_indices, 0], arrays[2])
    np.testing.assert_array_equal(data.labels[data.test_indices], arrays[3])
    assert record["class_names"] == registry.load_entry("mnist")["class_names"]
    np.testing.assert_allclose(data.mean, registry.load_entry("mnist")["normalisation"]["mean"], rtol=1e-6)


def test_cifar10_and_its_small_form_share_images_validation_and_cache(server, tmp_path):
    names = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    batches = {name: formats.cifar_samples(40, 10, seed) for seed, name in enumerate(names)}
    bins = formats.cifar10_bins(batches)
    routes = [server.add(name, content) for name, content in bins.items()]
    files = [file_entry(name, content, "sha1") for name, content in bins.items()]
    (tmp_path / "cache").mkdir()
    whole, _ = run_fetch(small_spec("cifar10", 200, 40, 50, files, server.base), tmp_path)
    small, record = run_fetch(small_spec("cifar10-s", 200, 40, 50, files, server.base), tmp_path)
    assert [len(route.requests) for route in routes] == [1] * 6
    np.testing.assert_array_equal(small.inputs, whole.inputs)
    np.testing.assert_array_equal(small.val_indices, whole.val_indices)
    np.testing.assert_array_equal(small.test_indices, whole.test_indices)
    assert set(small.train_indices) < set(whole.train_indices)
    of_whole = np.bincount(whole.labels[whole.train_indices])
    assert record["class_counts"]["train"] == [max(1, round(0.1 * count)) for count in of_whole]


def test_a_user_mistake_is_one_line_and_exit_code_2(tmp_path, capsys):
    np.savez(tmp_path / "a.npz", inputs=np.ones((9, 2)), labels=np.zeros(9, int))
    spec = registry.job_spec("own", {"npz": str(tmp_path / "a.npz")})
    arguments = [
        "--spec",
        json.dumps(spec),
        "--output",
        str(tmp_path / "d.npz"),
        "--record",
        str(tmp_path / "r"),
    ]
    assert run(fetch_data.main, arguments) == 2
    assert capsys.readouterr().err == "error: dataset own: classes must be at least 2, not 1\n"
    assert not (tmp_path / "d.npz").exists()


def inspected(tmp_path, spec):
    run_fetch(spec, tmp_path)
    paths = {"data": "d.npz", "record": "d.json", "figure": "d.png", "table": "d.csv"}
    words = [word for key, name in paths.items() for word in (f"--{key}", str(tmp_path / name))]
    assert run(inspect_data.main, words) == 0
    return list(csv.reader((tmp_path / "d.csv").read_text().splitlines()))


@pytest.mark.parametrize("name", ["gauss-3", "gauss-10", "digits"])
def test_inspection(tmp_path, name):
    rows = inspected(tmp_path, registry.job_spec(name, {"sizes": {"train": 120, "val": 40, "test": 60}}))
    counts = json.loads((tmp_path / "d.json").read_text())["class_counts"]
    assert rows[0] == ["label", "class", "train", "val", "test"]
    assert rows[-1] == ["all", "all", "120", "40", "60"]
    for label, row in enumerate(rows[1:-1]):
        assert row == [str(label), str(label), *(str(counts[split][label]) for split in prepared.SPLITS)]
    with Image.open(tmp_path / "d.png") as image:
        # Five inches at 150 dots per inch, and more shades than a blank page.
        assert image.size[0] == 750
        assert len(np.unique(np.asarray(image.convert("L")))) > 10
    assert (tmp_path / "d.pdf").read_bytes().startswith(b"%PDF")


def test_the_grid_shows_the_first_training_images_of_each_class(small_data):
    mosaic, pitch = inspection._mosaic(small_data, [0, 1])
    assert pitch == 3
    # Samples 4, 1, 2, 3 are for training; 4 and 2 have class 0, so 4 comes first in the upper row.
    np.testing.assert_array_equal(mosaic[:2, :3], small_data.inputs[4].transpose(1, 2, 0))
    np.testing.assert_array_equal(mosaic[:2, 4:7], small_data.inputs[2].transpose(1, 2, 0))
    np.testing.assert_array_equal(mosaic[3:5, :3], small_data.inputs[1].transpose(1, 2, 0))
    assert (mosaic[:, 8:] == 255).all()
