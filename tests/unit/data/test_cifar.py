import pickle

import numpy as np
import pytest

from focalcal.data import cifar
from focalcal.data.errors import ArchiveError
from tests.unit.data import official_formats as formats

NAMES = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
BINS = [f"{name}.bin" for name in NAMES]


@pytest.fixture(scope="module")
def batches():
    return {name: formats.cifar_samples(12, 10, seed) for seed, name in enumerate(NAMES)}


def test_binary_batches_are_read_in_order(tmp_path, batches):
    for name, content in formats.cifar10_bins(batches).items():
        (tmp_path / name).write_bytes(content)
    images, labels = cifar.read_binary_batches([tmp_path / name for name in BINS])
    expected = np.concatenate([batches[name][0] for name in NAMES]).reshape(-1, 3, 32, 32)
    np.testing.assert_array_equal(images, expected)
    np.testing.assert_array_equal(labels, np.concatenate([batches[name][1] for name in NAMES]))
    assert (images.dtype, labels.dtype) == (np.uint8, np.int64)


@pytest.mark.parametrize("protocol", range(5))
def test_pickles_of_python_3_are_read_too(protocol):
    value = {"data": np.arange(12, dtype=np.uint8).reshape(3, 4), "labels": [1, 2, 3], "name": "x"}
    loaded = cifar.restricted_unpickle(pickle.dumps(value, protocol=protocol))
    np.testing.assert_array_equal(loaded["data"], value["data"])
    assert (loaded["labels"], loaded["name"]) == ([1, 2, 3], "x")


class Malicious:
    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    ("function", "arguments"),
    [(eval, ("1 + 1",)), (open, ("/tmp/opened", "w")), (__import__, ("os",)), (getattr, ("", "join"))],  # noqa: S108
)
def test_a_pickle_cannot_call_anything(function, arguments, protocol):
    content = pickle.dumps({"data": Malicious(function, arguments)}, protocol=protocol)
    with pytest.raises(ArchiveError, match=r"refused to unpickle: \S+ is not allowed"):
        cifar.restricted_unpickle(content)


def test_a_pickle_cannot_make_an_array_of_forged_pointers():
    content = pickle.dumps(Malicious(np.ndarray, ((1,), "O", b"pointers")), protocol=2)
    with pytest.raises(ArchiveError, match="refused to unpickle: 'NoneType' object is not callable"):
        cifar.restricted_unpickle(content)


def test_a_nested_name_cannot_be_reached():
    """Protocol 4 looks up dotted names attribute by attribute, which must fail."""
    content = b"\x80\x04\x8c\x05numpy\x8c\x13f2py.os.system_name\x93."
    with pytest.raises(ArchiveError, match="is not allowed"):
        cifar.restricted_unpickle(content)


@pytest.mark.parametrize(
    "content", [b"", b"garbage", pickle.dumps({"a": 1})[:-3], b"\x80\x02(K\x01t", b"\x80\x020."]
)
def test_garbage_is_refused(content):
    with pytest.raises(ArchiveError, match="refused to unpickle"):
        cifar.restricted_unpickle(content)
