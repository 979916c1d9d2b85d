"""The prepared form of a dataset: one `.npz` that training, calibration and inspection read.

The file is an uncompressed zip of plain arrays: it loads at disk speed, can be memory-mapped, and the same
arrays always give the same bytes.
"""

import hashlib
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from focalcal.common import checksums
from focalcal.common.errors import UserError
from focalcal.common.npz import write_npz
from focalcal.common.samples import FEWEST_SAMPLES, SPLITS
from focalcal.data.splits import stratified

POSTERIOR_SUM_TOLERANCE = 1e-6
INPUT_KINDS = {
    ("uint8", 4): "images",
    ("float32", 2): "features",
    ("int32", 2): "tokens",
    ("int32", 3): "trees",
}
NODE_COLUMNS = ("word", "left", "right", "label")
TEXT_KINDS = ("tokens", "trees")
_OPTIONAL = ("posterior", "words", "vectors", "split_sizes")
_LOCAL_HEADER_BYTES = 30
_CHUNK = 4096
"""Samples whose statistics are computed at once."""


@dataclass(frozen=True)
class PreparedData:
    """Inputs and labels of every sample, with the three disjoint splits as indices into them."""

    inputs: np.ndarray
    """What `kind` says: uint8 (n, C, H, W) images; float32 (n, d) features; int32 (n, m) tokens, the numbers
    in `words` of each text, right-aligned after zeros; or int32 (n, m, 4) trees, one row per node after its
    children: word (-1 if it has children), left and right child (-1 if it has none), label; all -1 in rows
    after the root."""
    labels: np.ndarray
    """int64 (n,), from 0 to `classes` - 1."""
    train_indices: np.ndarray
    """int64; the three index arrays are pairwise disjoint and need not cover every sample."""
    val_indices: np.ndarray
    test_indices: np.ndarray
    classes: int
    """K, the number of classes."""
    mean: np.ndarray
    """float32 (C,) of images scaled to [0, 1]; (d,) of features; (0,) for texts."""
    std: np.ndarray
    """float32 (C,) of images scaled to [0, 1]; (d,) of features; (0,) for texts."""
    posterior: np.ndarray | None = None
    """float64 (n, K), the true class posterior of each sample where it is known."""
    words: np.ndarray | None = None
    """str (V,), the vocabulary of texts; word 0 is the empty one, which fills short texts."""
    vectors: np.ndarray | None = None
    """float32 (V, d), the initial vector of each word; that of word 0 is zero."""
    split_sizes: np.ndarray | None = None
    """int64 (3,), if each seed has its own stratified split: the sizes of train, val and test. The index
    arrays, mean and std are then those of seed 0. None if all seeds share one split."""

    @property
    def kind(self) -> str:
        """The kind of the inputs: images, features, tokens or trees."""
        return INPUT_KINDS[self.inputs.dtype.name, self.inputs.ndim]

    def indices(self, split: str) -> np.ndarray:
        """Return the int64 indices of `split`: "train", "val" or "test"."""
        return getattr(self, f"{split}_indices")

    def for_seed(self, seed: int) -> "PreparedData":
        """Return the data as a run with this seed uses it: its own split, normalised by its training part.

        Data whose seeds share one split are returned as they are.
        """
        if self.split_sizes is None:
            return self
        train, val, test = stratified(self.labels, self.split_sizes.tolist(), seed)
        mean, std = training_statistics(self.inputs, train)
        return replace(self, train_indices=train, val_indices=val, test_indices=test, mean=mean, std=std)


@dataclass(frozen=True)
class Preparation:
    """A prepared dataset and where it came from."""

    data: PreparedData
    source: str
    """A description of the source that served it."""
    class_names: list[str] | None = None
    """None if the classes have no names."""
    text: dict[str, Any] | None = None
    """How texts became numbers: tokenisation, vocabulary, vectors; None for other inputs."""
    encoding: dict[str, Any] | None = None
    """How the columns of a table became features; None for other inputs."""


def assembled(
    inputs: np.ndarray,
    labels: np.ndarray,
    indices: Mapping[str, np.ndarray],
    classes: int,
    normalisation: Mapping[str, Any] | None = None,
    **further: np.ndarray | None,
) -> PreparedData:
    """Return samples with the indices of their splits.

    Without `normalisation`, a mean and a std, these are those of the training samples.
    """
    if normalisation is None:
        normalisation = dict(zip(("mean", "std"), training_statistics(inputs, indices["train"]), strict=True))
    statistics = {name: np.asarray(values, dtype=np.float32) for name, values in normalisation.items()}
    splits = {f"{split}_indices": indices[split] for split in SPLITS}
    return PreparedData(inputs, labels, **splits, classes=classes, **statistics, **further)


def write_dataset(path: str | os.PathLike[str], data: PreparedData) -> None:
    """Write `data` to `path` atomically; the same arrays always give the same bytes."""
    validate(data)
    values = {field.name: getattr(data, field.name) for field in fields(data)}
    arrays = {name: np.asarray(value) for name, value in values.items() if value is not None}
    write_npz(path, arrays)


def load_dataset(path: str | os.PathLike[str], *, memory_map: bool = False) -> PreparedData:
    """Return the dataset in `path`; with `memory_map`, inputs are read-only and stay on disk until used."""
    path = Path(path)
    checksums.check(path)
    try:
        # Opened here, since np.load leaves a damaged zip file open.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays: dict[str, Any] = {name: archive[name] for name in archive.files if name != "inputs"}
        # The zip module would read the inputs several times more slowly to verify them; the checksum above
        # covers the whole file.
        inputs = _mapped_array(path, "inputs.npy")
        arrays["inputs"] = inputs if memory_map else np.array(inputs)
        arrays["classes"] = int(arrays["classes"])
        return PreparedData(**arrays)
    except FileNotFoundError:
        raise UserError(f"no prepared data at {path}; make it with: snakemake {path}") from None
    except (ValueError, KeyError, TypeError, zipfile.BadZipFile, EOFError) as error:
        raise UserError(f"{path} is not a prepared dataset ({error}); delete it and run again") from None


def training_statistics(inputs: np.ndarray, train: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the float32 mean and standard deviation of each channel or feature of the training samples.

    A constant feature gets standard deviation 1, so it is normalised to 0. Texts have neither.
    """
    if inputs.dtype == np.int32:
        return np.zeros(0, dtype=np.float32), np.zeros(0, dtype=np.float32)
    axes = (0, 2, 3) if inputs.ndim == 4 else (0,)
    scale = 255.0 if inputs.dtype == np.uint8 else 1.0
    chunks = [train[i : i + _CHUNK] for i in range(0, len(train), _CHUNK)]
    size = len(train) * int(np.prod(inputs.shape[2:], dtype=np.int64))
    mean = sum((inputs[chunk] / scale).sum(axis=axes, dtype=np.float64) for chunk in chunks) / size
    broadcast = mean[:, None, None] if inputs.ndim == 4 else mean
    squares = (
        np.square(inputs[chunk] / scale - broadcast).sum(axis=axes, dtype=np.float64) for chunk in chunks
    )
    std = np.sqrt(sum(squares) / size)
    return mean.astype(np.float32), np.where(std > 0, std, 1).astype(np.float32)


def split_checksum(data: PreparedData) -> str:
    """Return the SHA-256 of the three index arrays, as little-endian int64, in the order train, val, test."""
    digest = hashlib.sha256()
    for split in SPLITS:
        indices = data.indices(split).astype("<i8")
        digest.update(f"{split}:{indices.size}\n".encode())
        digest.update(indices.tobytes())
    return digest.hexdigest()


def class_counts(data: PreparedData) -> dict[str, list[int]]:
    """Return the class counts of each split, a list of K integers."""
    return {
        split: np.bincount(data.labels[data.indices(split)], minlength=data.classes).tolist()
        for split in SPLITS
    }


def validate(data: PreparedData) -> None:
    """Raise ValueError with the field, its value and what is allowed if `data` is malformed."""
    _validate_types(data)
    inputs, labels, posterior = data.inputs, data.labels, data.posterior
    if (inputs.dtype.name, inputs.ndim) not in INPUT_KINDS:
        raise ValueError(
            f"inputs must be uint8 (n, C, H, W) images, float32 (n, d) features, int32 (n, m) tokens or "
            f"int32 (n, m, 4) trees, not {_type_and_shape(inputs)}"
        )
    if 0 in inputs.shape:
        raise ValueError(f"inputs must not be empty, but have shape {inputs.shape}")
    if inputs.dtype == np.float32 and not np.isfinite(inputs).all():
        raise ValueError("inputs must be finite, but hold NaN or infinities")
    _validate_shapes(data)
    if data.kind in TEXT_KINDS:
        _validate_texts(data)
    if not (np.isfinite(data.mean).all() and np.isfinite(data.std).all() and (data.std > 0).all()):
        raise ValueError(f"mean must be finite and std positive, not {data.mean} and {data.std}")
    if data.classes < 2:
        raise ValueError(f"classes must be at least 2, not {data.classes}")
    if labels.min() < 0 or labels.max() >= data.classes:
        raise ValueError(f"labels must lie in 0..{data.classes - 1}, not {labels.min()}..{labels.max()}")
    _validate_splits(data)
    if posterior is not None:
        error = np.abs(posterior.sum(axis=1) - 1).max()
        if not (error <= POSTERIOR_SUM_TOLERANCE and posterior.min() >= 0):
            raise ValueError(
                f"posterior rows must be >= 0 and sum to 1; the largest error of a sum is {error:.3g}"
            )


def _validate_types(data: PreparedData) -> None:
    for field in fields(data):
        value = getattr(data, field.name)
        wanted, words = (int, "a Python int") if field.name == "classes" else (np.ndarray, "a NumPy array")
        is_omitted = field.name in _OPTIONAL and value is None
        if not (isinstance(value, wanted) or is_omitted):
            raise ValueError(f"{field.name} must be {words}, not {type(value).__name__}; correct it")


def _validate_shapes(data: PreparedData) -> None:
    """Check the types and shapes that follow from the inputs'."""
    count, channels = data.inputs.shape[:2]
    if data.kind in TEXT_KINDS:
        channels = 0
    expected = {
        "labels": ("int64", (count,)),
        "mean": ("float32", (channels,)),
        "std": ("float32", (channels,)),
        "posterior": ("float64", (count, data.classes)),
        "split_sizes": ("int64", (len(SPLITS),)),
    }
    for name, (dtype, shape) in expected.items():
        values = getattr(data, name)
        if values is not None and (values.dtype != dtype or values.shape != shape):
            raise ValueError(f"{name} must be {dtype} {shape}, not {_type_and_shape(values)}")


def _validate_texts(data: PreparedData) -> None:
    """Check that words have vectors, and that texts and trees name only words and nodes that exist."""
    inputs, words, vectors = data.inputs, data.words, data.vectors
    if words is None or vectors is None:
        raise ValueError(f"{data.kind} need words and vectors, but one of them is missing")
    if words.dtype.kind != "U" or words.ndim != 1 or words[:1].tolist() != [""]:
        raise ValueError(f"words must be str (V,) with word 0 empty, not {_type_and_shape(words)}")
    if vectors.dtype != np.float32 or vectors.ndim != 2 or len(vectors) != len(words):
        raise ValueError(f"vectors must be float32 ({len(words)}, d), not {_type_and_shape(vectors)}")
    if not np.isfinite(vectors).all() or vectors[0].any():
        raise ValueError("vectors must be finite, and that of word 0 zero")
    used = inputs if data.kind == "tokens" else inputs[:, :, 0]
    least = 0 if data.kind == "tokens" else -1
    if used.min() < least or used.max() >= len(words):
        raise ValueError(f"words must be numbered {least}..{len(words) - 1}, not {used.min()}..{used.max()}")
    if data.kind == "tokens":
        return
    if inputs.shape[2] != len(NODE_COLUMNS):
        raise ValueError(f"trees must have the columns {', '.join(NODE_COLUMNS)}, not {inputs.shape[2]}")
    _validate_trees(inputs, data.labels, data.classes)


def _validate_trees(inputs: np.ndarray, labels: np.ndarray, classes: int) -> None:
    """Check that the rows of each sample are one binary tree with words in its leaves, the root last."""
    word, left, right, label = np.moveaxis(inputs, 2, 0)
    samples, positions = np.arange(len(inputs)), np.arange(inputs.shape[1])
    if not ((left < positions) & (right < positions) & ((left < 0) == (right < 0))).all():
        raise ValueError("each node of a tree must have no children or two, in rows above its own")
    if label.max() > classes:
        raise ValueError(f"labels of nodes must be at most {classes}, which is neutral")
    nodes = label >= 0
    sizes = nodes.sum(axis=1)
    if sizes.min() < 1 or not (nodes == (positions < sizes[:, None])).all():
        raise ValueError("each tree must have a node, and every node a label; rows after the root have -1")
    if (word[nodes & (left < 0)] < 0).any():
        raise ValueError("each node of a tree without children must have a word")
    parents = np.zeros(nodes.shape, dtype=np.int64)
    for children in (left, right):
        inner = nodes & (children >= 0)
        np.add.at(parents, (np.nonzero(inner)[0], children[inner]), 1)
    if not (parents[nodes] == (positions < sizes[:, None] - 1)[nodes]).all():
        raise ValueError("each node of a tree must be the child of one other, except the root, which is last")
    if not (label[samples, sizes - 1] == labels).all():
        raise ValueError("the label of each sample must be that of its root")


def _validate_splits(data: PreparedData) -> None:
    count = len(data.inputs)
    uses = np.zeros(count, dtype=np.int64)
    for split in SPLITS:
        indices = data.indices(split)
        if indices.dtype != np.int64 or indices.ndim != 1 or indices.size < FEWEST_SAMPLES[split]:
            raise ValueError(
                f"{split}_indices must be int64 (m,) with m, the number of {split} samples, "
                f"at least {FEWEST_SAMPLES[split]}, not {_type_and_shape(indices)}"
            )
        if indices.min() < 0 or indices.max() >= count:
            raise ValueError(
                f"{split}_indices must lie in 0..{count - 1}, not {indices.min()}..{indices.max()}"
            )
        uses += np.bincount(indices, minlength=count)
    if uses.max() > 1:
        raise ValueError(f"splits must be disjoint; sample {int(uses.argmax())} is used {uses.max()} times")


def _type_and_shape(array: np.ndarray) -> str:
    return f"{array.dtype} {array.shape}"


def _mapped_array(path: Path, member: str) -> np.memmap:
    """Return the array stored as `member` of the uncompressed zip at `path`, mapped read-only."""
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(member)
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"member {member} is compressed")
    with path.open("rb") as file:
        file.seek(info.header_offset)
        header = file.read(_LOCAL_HEADER_BYTES)
        # The local header ends with the lengths of the name and extra field, which follow it.
        name_length = int.from_bytes(header[26:28], "little")
        extra_length = int.from_bytes(header[28:30], "little")
        file.seek(name_length + extra_length, os.SEEK_CUR)
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError(f"member {member} is not what np.savez writes")
        shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(file)
        # Object references read as raw bytes would be wild pointers.
        if dtype.hasobject:
            raise ValueError("an array holds Python objects")
        order: Literal["F", "C"] = "F" if fortran_order else "C"
        return np.memmap(path, dtype=dtype, mode="r", offset=file.tell(), shape=shape, order=order)
