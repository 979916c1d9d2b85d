"""The prepared form of a dataset: one `.npz` that training, calibration and inspection read.

The file is an uncompressed zip of plain arrays, so it loads at disk speed, can be memory-mapped, and has the
same bytes whenever it is written from the same arrays.
"""

import hashlib
import os
import zipfile
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from focalcal.common.errors import UserError
from focalcal.common.io import atomic_output
from focalcal.common.samples import FEWEST_SAMPLES, SPLITS

POSTERIOR_SUM_TOLERANCE = 1e-6
_CHUNK_BYTES = 1 << 20
_LOCAL_HEADER_BYTES = 30


@dataclass(frozen=True)
class PreparedData:
    """Inputs and labels of every sample, with the three disjoint splits as indices into them."""

    inputs: np.ndarray
    """uint8 (n, C, H, W) images, or float32 (n, d) features."""
    labels: np.ndarray
    """int64 (n,), from 0 to `classes` - 1."""
    train_indices: np.ndarray
    """int64; the three index arrays are pairwise disjoint and need not cover every sample."""
    val_indices: np.ndarray
    test_indices: np.ndarray
    classes: int
    """K, the number of classes."""
    mean: np.ndarray
    """float32 (C,) of images scaled to [0, 1]; zeros (d,) for features."""
    std: np.ndarray
    """float32 (C,) of images scaled to [0, 1]; ones (d,) for features."""
    posterior: np.ndarray | None = None
    """float64 (n, K), the true class posterior of each sample where it is known."""

    def indices(self, split: str) -> np.ndarray:
        """Return the int64 indices of `split`: "train", "val" or "test"."""
        return getattr(self, f"{split}_indices")


def write(path: str | os.PathLike[str], data: PreparedData) -> None:
    """Write `data` to `path` atomically; the same arrays always give the same bytes."""
    validate(data)
    arrays = {field.name: np.asarray(getattr(data, field.name)) for field in fields(data)}
    if data.posterior is None:
        del arrays["posterior"]
    with atomic_output(path) as partial:
        # np.savez stamps every member with the same fixed date, and the members keep this order.
        np.savez(partial, **arrays)


def load(path: str | os.PathLike[str], *, memory_map: bool = False) -> PreparedData:
    """Return the dataset in `path`; with `memory_map`, the inputs stay on disk, read-only, until touched."""
    path = Path(path)
    try:
        # Opened here, since np.load leaves a damaged zip file open.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays: dict[str, Any] = {name: archive[name] for name in archive.files if name != "inputs"}
        # The zip module would read the inputs several times more slowly, to verify what the record's checksum
        # of the whole file already covers.
        arrays["inputs"] = _stored_array(path, "inputs.npy", memory_map=memory_map)
        arrays["classes"] = int(arrays["classes"])
        return PreparedData(**arrays)
    except FileNotFoundError:
        raise UserError(f"no prepared data at {path}; make it with: snakemake {path}") from None
    except (ValueError, KeyError, TypeError, zipfile.BadZipFile, EOFError) as error:
        raise UserError(f"{path} is not a prepared dataset ({error}); delete it and run again") from None


def checksum(path: str | os.PathLike[str], algorithm: str = "sha256") -> str:
    """Return the hexadecimal digest of the file at `path`."""
    digest = hashlib.new(algorithm, usedforsecurity=False)
    with Path(path).open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def split_checksum(data: PreparedData) -> str:
    """Return the SHA-256 of the three index arrays, as little-endian int64, in the order train, val, test."""
    digest = hashlib.sha256()
    for split in SPLITS:
        indices = data.indices(split).astype("<i8")
        digest.update(f"{split}:{indices.size}\n".encode())
        digest.update(indices.tobytes())
    return digest.hexdigest()


def class_counts(data: PreparedData) -> dict[str, list[int]]:
    """Return for each split the number of its samples in each class, a list of K integers."""
    return {
        split: np.bincount(data.labels[data.indices(split)], minlength=data.classes).tolist()
        for split in SPLITS
    }


def validate(data: PreparedData) -> None:
    """Raise ValueError naming the field, its value and what is allowed, unless `data` is well formed."""
    _validate_types(data)
    _validate_inputs(data)
    count = len(data.inputs)
    if data.labels.dtype != np.int64 or data.labels.shape != (count,):
        raise ValueError(f"labels must be int64 ({count},), not {_described(data.labels)}")
    if data.classes < 2:
        raise ValueError(f"classes must be at least 2, not {data.classes}")
    if count and (data.labels.min() < 0 or data.labels.max() >= data.classes):
        raise ValueError(
            f"labels must lie in 0..{data.classes - 1}, not {data.labels.min()}..{data.labels.max()}"
        )
    _validate_splits(data)
    if data.posterior is not None:
        _validate_posterior(data.posterior, count, data.classes)


def _validate_types(data: PreparedData) -> None:
    for field in fields(data):
        value = getattr(data, field.name)
        wanted, words = (int, "a Python int") if field.name == "classes" else (np.ndarray, "a NumPy array")
        is_left_out = field.name == "posterior" and value is None
        if not (isinstance(value, wanted) or is_left_out):
            raise ValueError(f"{field.name} must be {words}, not {type(value).__name__}; correct it")


def _validate_inputs(data: PreparedData) -> None:
    inputs = data.inputs
    is_images = inputs.dtype == np.uint8 and inputs.ndim == 4
    is_features = inputs.dtype == np.float32 and inputs.ndim == 2
    if not (is_images or is_features):
        raise ValueError(
            f"inputs must be uint8 (n, C, H, W) images or float32 (n, d) features, not {_described(inputs)}"
        )
    if 0 in inputs.shape:
        raise ValueError(f"inputs must not be empty, but have shape {inputs.shape}")
    if is_features and not np.isfinite(inputs).all():
        raise ValueError("inputs must be finite, but hold NaN or infinities")
    for name in ("mean", "std"):
        values = getattr(data, name)
        if values.dtype != np.float32 or values.shape != (inputs.shape[1],):
            raise ValueError(f"{name} must be float32 ({inputs.shape[1]},), not {_described(values)}")
    if not (np.isfinite(data.mean).all() and np.isfinite(data.std).all() and (data.std > 0).all()):
        raise ValueError(f"mean must be finite and std positive, not {data.mean} and {data.std}")


def _validate_splits(data: PreparedData) -> None:
    count = len(data.inputs)
    uses = np.zeros(count, dtype=np.int64)
    for split in SPLITS:
        indices = data.indices(split)
        if indices.dtype != np.int64 or indices.ndim != 1 or indices.size < FEWEST_SAMPLES[split]:
            raise ValueError(
                f"{split}_indices must be int64 (m,) with m, the number of {split} samples, "
                f"at least {FEWEST_SAMPLES[split]}, not {_described(indices)}"
            )
        if indices.min() < 0 or indices.max() >= count:
            raise ValueError(
                f"{split}_indices must lie in 0..{count - 1}, not {indices.min()}..{indices.max()}"
            )
        uses += np.bincount(indices, minlength=count)
    if uses.max() > 1:
        raise ValueError(f"splits must be disjoint; sample {int(uses.argmax())} is used {uses.max()} times")


def _validate_posterior(posterior: np.ndarray, count: int, classes: int) -> None:
    if posterior.dtype != np.float64 or posterior.shape != (count, classes):
        raise ValueError(f"posterior must be float64 ({count}, {classes}), not {_described(posterior)}")
    error = np.abs(posterior.sum(axis=1) - 1).max()
    if not (error <= POSTERIOR_SUM_TOLERANCE and posterior.min() >= 0):
        raise ValueError(f"posterior rows must be >= 0 and sum to 1; the worst row is off by {error:.3g}")


def _described(array: np.ndarray) -> str:
    return f"{array.dtype} {array.shape}"


def _stored_array(path: Path, member: str, *, memory_map: bool) -> np.ndarray:
    """Return the array stored as `member` of the uncompressed zip at `path`, read or mapped read-only."""
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(member)
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"member {member} is compressed")
    with path.open("rb") as file:
        file.seek(info.header_offset)
        header = file.read(_LOCAL_HEADER_BYTES)
        # The local header ends with the lengths of the name and of the extra field that follow it.
        name_length = int.from_bytes(header[26:28], "little")
        extra_length = int.from_bytes(header[28:30], "little")
        file.seek(name_length + extra_length, os.SEEK_CUR)
        shape, fortran_order, dtype = _read_array_header(file)
        order = "F" if fortran_order else "C"
        if memory_map:
            return np.memmap(path, dtype=dtype, mode="r", offset=file.tell(), shape=shape, order=order)
        count = int(np.prod(shape, dtype=np.int64))
        return np.fromfile(file, dtype=dtype, count=count).reshape(shape, order=order)


def _read_array_header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, fortran_order, dtype = readers[version](file)
    # Mapped or read as raw bytes, object references would be wild pointers.
    if dtype.hasobject:
        raise ValueError("an array holds Python objects")
    return shape, fortran_order, dtype
