"""The official file formats of the downloadable datasets.

Each parser reads verified files from a folder and returns the official training samples followed by the
official test samples. The tests compare them with torchvision's readers. torchvision itself is not used
because it takes seconds to import, reads pickles without restriction, and accepts only the copy whose
checksum it knows.
"""

import io
import struct
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from focalcal.data import cifar
from focalcal.data.archives import read_zip_member
from focalcal.data.errors import ArchiveError
from focalcal.data.progress import followed

_LARGEST_IMAGE_BYTES = 1 << 22
_IDX_UNSIGNED_BYTES = 0x08


@dataclass(frozen=True)
class Samples:
    """Official training samples, then official test samples."""

    images: np.ndarray
    """uint8 (n, C, H, W)."""
    labels: np.ndarray
    """int64 (n,)."""
    train_count: int
    class_names: list[str] | None = None
    """Set if the files themselves name the classes."""


def parse(entry: Mapping[str, Any], folder: Path) -> Samples:
    """Return the samples of a registry entry from its files in `folder`, with counts and shape checked."""
    samples = _PARSERS[entry["format"]](folder, [file["name"] for file in entry["files"]])
    counts = {"train": samples.train_count, "test": len(samples.labels) - samples.train_count}
    if counts != entry["counts"]:
        raise ValueError(f"has {counts} official samples instead of {entry['counts']}")
    if list(samples.images.shape[1:]) != entry["shape"]:
        raise ValueError(f"has images of shape {list(samples.images.shape[1:])} instead of {entry['shape']}")
    return samples


def read_idx(path: Path) -> np.ndarray:
    """Return the uint8 array of an IDX file: two zero bytes, type, rank, big-endian sizes, values."""
    content = path.read_bytes()
    zeros, kind, rank = struct.unpack_from(">HBB", content)
    if zeros != 0 or kind != _IDX_UNSIGNED_BYTES:
        raise ValueError(f"{path.name} is not an IDX file of bytes")
    shape = struct.unpack_from(f">{rank}I", content, 4)
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * rank).reshape(shape)


def _parse_idx(folder: Path, names: list[str]) -> Samples:
    """Return MNIST-like samples; `names` are train images, train labels, test images, test labels."""
    train_images, train_labels, test_images, test_labels = (read_idx(folder / name) for name in names)
    return _joined((train_images[:, None], train_labels), (test_images[:, None], test_labels))


def _parse_cifar_binary(folder: Path, names: list[str]) -> Samples:
    """Return CIFAR-10 from its canonical binary batches; the last name is the test batch."""
    images, labels = cifar.read_binary_batches([folder / name for name in names])
    test_count = (folder / names[-1]).stat().st_size // (1 + cifar.PIXELS)
    return Samples(images, labels, len(labels) - test_count)


def _parse_cifar100(folder: Path, names: list[str]) -> Samples:
    """Return CIFAR-100 with its 100 fine classes from the official Python archive."""
    batches = cifar.read_pickled_batches(folder / names[0], {"train", "test", "meta"})
    train, test = ((batches[split]["data"], batches[split]["fine_labels"]) for split in ("train", "test"))
    samples = _joined(train, test)
    images = samples.images.reshape(-1, 3, cifar.SIDE, cifar.SIDE)
    return replace(samples, images=images, class_names=batches["meta"]["fine_label_names"])


def _parse_svhn(folder: Path, names: list[str]) -> Samples:
    """Return SVHN (cropped digits); `names` are the train and test .mat files."""
    from scipy.io import loadmat  # noqa: PLC0415  only this format needs it

    parts = []
    for name in names:
        content = loadmat(folder / name, variable_names=["X", "y"])
        # MATLAB has (height, width, channel, image), and calls the digit 0 class 10.
        parts.append((content["X"].transpose(3, 2, 0, 1), content["y"].ravel() % 10))
    return _joined(*parts)


def _parse_tiny_imagenet(folder: Path, names: list[str]) -> Samples:
    """Return TinyImageNet from its zip: train as training, the official validation set as test.

    The official test set has no labels. Classes are numbered in the alphabetical order of their WordNet ids.
    """
    with zipfile.ZipFile(folder / names[0]) as archive:
        members = {info.filename.partition("/")[2]: info for info in archive.infolist()}
        classes = sorted(_text(archive, members["wnids.txt"]).split())
        label_of = {name: label for label, name in enumerate(classes)}
        words = dict(line.split("\t") for line in _text(archive, members["words.txt"]).splitlines())
        train = [
            (member, label_of[member.split("/")[1]])
            for member in sorted(members)
            if member.startswith("train/") and member.endswith(".JPEG")
        ]
        annotations = _text(archive, members["val/val_annotations.txt"]).splitlines()
        rows = sorted(line.split("\t")[:2] for line in annotations)
        test = [(f"val/images/{file}", label_of[name]) for file, name in rows]
        images = _decode_all(archive, [members[member] for member, _ in train + test])
    labels = np.array([label for _, label in train + test], dtype=np.int64)
    return Samples(images, labels, len(train), [words[name].partition(",")[0] for name in classes])


def _decode_all(archive: zipfile.ZipFile, infos: list[zipfile.ZipInfo]) -> np.ndarray:
    """Return the JPEGs of `infos` as uint8 (n, 3, H, W); greyscale images get three equal channels."""
    from PIL import Image  # noqa: PLC0415  only this format needs it

    if not infos:
        raise ArchiveError("it contains no images")
    images = None
    for i, info in enumerate(followed(infos, "decoding images")):
        with Image.open(io.BytesIO(read_zip_member(archive, info, _LARGEST_IMAGE_BYTES))) as image:
            pixels = np.asarray(image.convert("RGB")).transpose(2, 0, 1)
        # One allocation: a list of images and its stack would need twice the memory.
        images = np.empty((len(infos), *pixels.shape), dtype=np.uint8) if images is None else images
        images[i] = pixels
    return images


def _text(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> str:
    return read_zip_member(archive, info, _LARGEST_IMAGE_BYTES).decode("utf-8")


def _joined(train: tuple[np.ndarray, Any], test: tuple[np.ndarray, Any]) -> Samples:
    """Return the images and labels of the two parts as one."""
    images, labels = (np.concatenate(parts) for parts in zip(train, test, strict=True))
    return Samples(images, labels.astype(np.int64), len(train[0]))


_PARSERS: dict[str, Callable[[Path, list[str]], Samples]] = {
    "idx": _parse_idx,
    "cifar10-binary": _parse_cifar_binary,
    "cifar100-python": _parse_cifar100,
    "svhn-mat": _parse_svhn,
    "tiny-imagenet-zip": _parse_tiny_imagenet,
}
