"""Each parser against the arrays that its files were made from, and against torchvision on those files."""

import importlib

import numpy as np
import pytest
from scipy.io import savemat

from focalcal.data import parsers
from tests.unit.data import official_formats as formats


@pytest.fixture(scope="module")
def torchvision():
    """Return torchvision with its checksum verification switched off."""
    # The order matters, and sorted import statements would change it.
    importlib.import_module("focalcal.training.torchvision_shim")
    datasets = importlib.import_module("torchvision.datasets")
    patch = pytest.MonkeyPatch()
    for module in (datasets.cifar, datasets.svhn):
        patch.setattr(module, "check_integrity", lambda path, md5=None: path is not None or md5)
    yield datasets
    patch.undo()


def entry(kind, names, train, test, shape):
    return {
        "format": kind,
        "files": [{"name": name} for name in names],
        "counts": {"train": train, "test": test},
        "shape": shape,
    }


def assert_agrees(samples, train, test):
    """`train` and `test` are torchvision's images, channel first, and labels."""
    np.testing.assert_array_equal(samples.images, np.concatenate([train[0], test[0]]))
    np.testing.assert_array_equal(samples.labels, np.concatenate([train[1], test[1]]))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_cifar10(tmp_path, torchvision):
    names = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    batches = {name: formats.cifar_samples(7, 10, seed) for seed, name in enumerate(names)}
    for name, content in formats.cifar10_bins(batches).items():
        (tmp_path / name).write_bytes(content)
    bins = [f"{name}.bin" for name in names]
    samples = parsers.parse(entry("cifar10-binary", bins, 35, 7, [3, 32, 32]), tmp_path)
    assert samples.train_count == 35
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for name, (images, labels) in batches.items():
        (folder / name).write_bytes(formats.python2_pickle({"data": images, "labels": labels.tolist()}))
    (folder / "batches.meta").write_bytes(formats.python2_pickle({"label_names": ["a"]}))
    train, test = (torchvision.CIFAR10(tmp_path, train=train) for train in (True, False))
    assert_agrees(
        samples,
        (train.data.transpose(0, 3, 1, 2), train.targets),
        (test.data.transpose(0, 3, 1, 2), test.targets),
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_cifar100(tmp_path, torchvision):
    train, test = formats.cifar_samples(20, 100, 1), formats.cifar_samples(9, 100, 2)
    names = [f"class {i}" for i in range(100)]
    archive = tmp_path / "cifar-100-python.tar.gz"
    archive.write_bytes(formats.cifar100_python(train, test, names))
    samples = parsers.parse(entry("cifar100-python", [archive.name], 20, 9, [3, 32, 32]), tmp_path)
    assert samples.class_names == names
    assert samples.train_count == 20
    np.testing.assert_array_equal(samples.images[:20], train[0].reshape(-1, 3, 32, 32))
    from focalcal.data.archives import extract  # noqa: PLC0415

    extract(archive, tmp_path, lambda _name: True)
    theirs = [torchvision.CIFAR100(tmp_path, train=flag) for flag in (True, False)]
    assert_agrees(samples, *((data.data.transpose(0, 3, 1, 2), data.targets) for data in theirs))


def test_svhn(tmp_path, torchvision):
    random = np.random.RandomState(0)
    for split, count in {"train": 23, "test": 11}.items():
        pixels = random.randint(0, 256, (32, 32, 3, count)).astype(np.uint8)
        # The digit 0 is class 10 in these files.
        labels = (np.arange(count) % 10 + 1).astype(np.uint8)[:, None]
        savemat(tmp_path / f"{split}_32x32.mat", {"X": pixels, "y": labels}, do_compression=True)
    samples = parsers.parse(
        entry("svhn-mat", ["train_32x32.mat", "test_32x32.mat"], 23, 11, [3, 32, 32]), tmp_path
    )
    assert samples.labels[8:11].tolist() == [9, 0, 1]
    theirs = [torchvision.SVHN(tmp_path, split=split) for split in ("train", "test")]
    assert_agrees(samples, *((data.data, data.labels) for data in theirs))


@pytest.mark.parametrize("name", ["MNIST", "FashionMNIST"])
def test_idx(tmp_path, torchvision, name):
    random = np.random.RandomState(1)
    folder = tmp_path / name / "raw"
    folder.mkdir(parents=True)
    names = [
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte",
    ]
    for file, count in zip(names, (30, 30, 12, 12), strict=True):
        shape = (count, 28, 28) if "images" in file else (count,)
        limit = 256 if "images" in file else 10
        (folder / file).write_bytes(formats.idx(random.randint(0, limit, shape).astype(np.uint8)))
    samples = parsers.parse(entry("idx", names, 30, 12, [1, 28, 28]), folder)
    theirs = [getattr(torchvision, name)(tmp_path, train=flag) for flag in (True, False)]
    assert_agrees(samples, *((data.data.numpy()[:, None], data.targets.numpy()) for data in theirs))


@pytest.mark.parametrize("content", [b"\0\0\x0d\1\0\0\0\1\0\0\0\0", b"\1\0\x08\1\0\0\0\1\0"])
def test_idx_of_something_else_is_refused(tmp_path, content):
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(ValueError, match="f is not an IDX file of bytes"):
        parsers.read_idx(tmp_path / "f")


def test_tiny_imagenet(tmp_path):
    classes = ["n01443537", "n01629819", "n02002724"]
    content, pixels = formats.tiny_imagenet(tmp_path, classes, a_class=5, test=7)
    (tmp_path / "tiny-imagenet-200.zip").write_bytes(content)
    samples = parsers.parse(
        entry("tiny-imagenet-zip", ["tiny-imagenet-200.zip"], 15, 7, [3, 64, 64]), tmp_path
    )
    assert samples.class_names == [f"word of {name}" for name in classes]
    assert samples.labels.tolist() == [0] * 5 + [1] * 5 + [2] * 5 + [i % 3 for i in range(7)]
    members = [f"train/{name}/images/{name}_{i}.JPEG" for name in classes for i in range(5)]
    members += [f"val/images/val_{i}.JPEG" for i in range(7)]
    expected = np.stack([pixels[member] for member in members]).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(samples.images, expected)
    grey = samples.images[0]
    assert (grey[0] == grey[1]).all()
    assert (grey[0] == grey[2]).all()
    assert (samples.images[1][0] != samples.images[1][1]).any()


def test_wrong_counts_and_shapes_are_refused(tmp_path):
    names = ["a", "b", "c", "d"]
    for name, shape in zip(names, [(4, 28, 28), (4,), (2, 28, 28), (2,)], strict=True):
        (tmp_path / name).write_bytes(formats.idx(np.zeros(shape, np.uint8)))
    parsers.parse(entry("idx", names, 4, 2, [1, 28, 28]), tmp_path)
    with pytest.raises(ValueError, match=r"has \{'train': 4, 'test': 2\} official samples instead of"):
        parsers.parse(entry("idx", names, 4, 3, [1, 28, 28]), tmp_path)
    with pytest.raises(ValueError, match=r"has images of shape \[1, 28, 28\] instead of \[1, 32, 32\]"):
        parsers.parse(entry("idx", names, 4, 2, [1, 32, 32]), tmp_path)
