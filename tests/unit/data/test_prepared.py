import hashlib
import zipfile
from dataclasses import fields, replace

import numpy as np
import pytest

from focalcal.common.errors import UserError
from focalcal.data import prepared


def assert_same(left, right):
    for field in fields(left):
        np.testing.assert_array_equal(getattr(left, field.name), getattr(right, field.name))


@pytest.mark.parametrize("memory_map", [False, True])
def test_what_is_written_is_read(small_data, tmp_path, memory_map):
    prepared.write_dataset(tmp_path / "d.npz", small_data)
    loaded = prepared.load_dataset(tmp_path / "d.npz", memory_map=memory_map)
    assert_same(loaded, small_data)
    assert loaded.posterior is None
    assert isinstance(loaded.inputs, np.memmap) == memory_map
    assert isinstance(loaded.classes, int)


@pytest.mark.parametrize("memory_map", [False, True])
def test_fortran_ordered_inputs(small_data, tmp_path, memory_map):
    data = replace(small_data, inputs=np.asfortranarray(small_data.inputs))
    prepared.write_dataset(tmp_path / "d.npz", data)
    assert_same(prepared.load_dataset(tmp_path / "d.npz", memory_map=memory_map), small_data)


def test_bytes_are_the_same_each_time(small_data, tmp_path):
    prepared.write_dataset(tmp_path / "a.npz", small_data)
    prepared.write_dataset(tmp_path / "b.npz", small_data)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}


def test_split_checksum_follows_its_definition(small_data):
    text = b"train:4\n" + b"".join(i.to_bytes(8, "little") for i in (4, 1, 2, 3))
    text += b"val:2\n" + b"".join(i.to_bytes(8, "little") for i in (0, 5))
    text += b"test:2\n" + b"".join(i.to_bytes(8, "little") for i in (6, 7))
    assert prepared.split_checksum(small_data) == hashlib.sha256(text).hexdigest()
    swapped = replace(small_data, val_indices=small_data.test_indices, test_indices=small_data.val_indices)
    assert prepared.split_checksum(swapped) != prepared.split_checksum(small_data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": np.zeros((8, 3, 2, 3))}, r"inputs must be uint8 .* not float64 \(8, 3, 2, 3\)"),
        (
            {"inputs": np.zeros((8, 3, 0, 3), np.uint8)},
            r"inputs must not be empty, but have shape \(8, 3, 0, 3\)",
        ),
        ({"labels": np.zeros(8, np.int32)}, r"labels must be int64 \(8,\), not int32 \(8,\)"),
        ({"labels": np.full(8, 2)}, r"labels must lie in 0\.\.1, not 2\.\.2"),
        ({"classes": 1, "labels": np.zeros(8, np.int64)}, "classes must be at least 2, not 1"),
        ({"std": np.zeros(3, np.float32)}, "std positive"),
        ({"mean": np.full(3, np.nan, np.float32)}, "mean must be finite"),
        ({"val_indices": np.array([0])}, r"the number of val samples, at least 2, not int64 \(1,\)"),
        ({"train_indices": np.array([], np.int64)}, "the number of train samples, at least 1, not"),
        ({"inputs": [[0.0]] * 8}, "inputs must be a NumPy array, not list; correct it"),
        ({"classes": "2"}, "classes must be a Python int, not str; correct it"),
        ({"val_indices": np.array([0.0])}, r"val_indices must be int64 .* not float64"),
        ({"test_indices": np.array([7, 8])}, r"test_indices must lie in 0\.\.7, not 7\.\.8"),
        ({"test_indices": np.array([6, 5])}, "splits must be disjoint; sample 5 is used 2 times"),
        ({"posterior": np.ones((8, 2), np.float32)}, r"posterior must be float64 \(8, 2\), not float32"),
        ({"posterior": np.full((8, 2), 0.5001)}, "the largest error of a sum is 0.0002"),
        ({"posterior": np.tile([-0.5, 1.5], (8, 1))}, "posterior rows must be >= 0"),
    ],
)
def test_malformed_data_is_refused_by_name(small_data, tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        prepared.write_dataset(tmp_path / "d.npz", replace(small_data, **change))
    assert list(tmp_path.iterdir()) == []


def test_missing_file_says_how_to_make_it(tmp_path):
    with pytest.raises(UserError, match=r"no prepared data at .*gone\.npz; make it with: snakemake"):
        prepared.load_dataset(tmp_path / "gone.npz")


@pytest.mark.parametrize("memory_map", [False, True])
@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 truncated"])
def test_damaged_file_is_named(tmp_path, content, memory_map):
    (tmp_path / "d.npz").write_bytes(content)
    with pytest.raises(UserError, match=r"d\.npz is not a prepared dataset .*delete it and run again"):
        prepared.load_dataset(tmp_path / "d.npz", memory_map=memory_map)


@pytest.mark.parametrize("memory_map", [False, True])
def test_an_object_array_of_inputs_is_refused(small_data, tmp_path, memory_map):
    arrays = {name: value for name, value in vars(small_data).items() if value is not None}
    np.savez(tmp_path / "d.npz", **{**arrays, "inputs": np.array([object()] * 8)})
    with pytest.raises(UserError, match="an array holds Python objects"):
        prepared.load_dataset(tmp_path / "d.npz", memory_map=memory_map)
