"""Arrays from files that other people published. Nothing in a file is executed.

It reads `.npy`, `.npz`, `.csv`, pickles of NumPy arrays (`.p`) and PyTorch's zip archives of tensors (`.pt`).
Of a pickle, only the operations that make tuples, lists, numbers and texts are allowed, and calls of the
three names that NumPy writes an array with, or of the few of PyTorch; each stands for something in this
module. What a file declares is compared with its size before memory is taken.
"""

import csv
import io
import math
import pickle
import pickletools
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from focalcal.common.npz import read_npz
from focalcal.data.archives import read_zip_member
from focalcal.data.errors import ArchiveError

LARGEST_FILE = 1 << 28
MOST_OPERATIONS = 10_000
"""A pickle of a few arrays takes about a hundred operations."""
NUMBERS = frozenset({"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"})
_NUMBERED = frozenset({"BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET"})
_OPERATIONS = _NUMBERED | {
    *("PROTO", "FRAME", "STOP", "MARK", "MEMOIZE", "NONE", "NEWTRUE", "NEWFALSE"),
    *("BININT", "BININT1", "BININT2", "SHORT_BINUNICODE", "BINUNICODE", "SHORT_BINBYTES", "BINBYTES"),
    *("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_LIST", "APPEND", "APPENDS"),
    *("EMPTY_DICT", "SETITEM", "SETITEMS"),
    *("GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "BINPERSID"),
}
"""What pickles of arrays consist of: constants, tuples, lists and dicts, names, calls."""


def read_arrays(path: Path, columns: Mapping[str, Any] | None = None) -> dict[str, NDArray]:
    """Return the arrays of a file by name; raise ArchiveError, or UserError, if it cannot be read.

    The name of a `.npy` array is the file's stem. A pair of arrays is `logits` and `labels`, two pairs are
    those of validation and test. `columns` says which columns of a table hold the label and, by label, the
    logits.
    """
    size = path.stat().st_size
    if size > LARGEST_FILE:
        raise ArchiveError(f"it has {size} bytes, more than {LARGEST_FILE}")
    if path.suffix == ".npz":
        return read_npz(path)
    if path.suffix == ".npy":
        return {path.stem: read_npy(path)}
    if path.suffix == ".csv":
        return _read_table(path, columns or {})
    if path.suffix == ".p":
        return read_pickle(path)
    if path.suffix == ".pt":
        return read_tensors(path)
    raise ArchiveError(f"its suffix is {path.suffix!r}; allowed: .npy, .npz, .csv, .p, .pt")


def read_pickle(path: Path) -> dict[str, NDArray]:
    """Return the NumPy arrays of a pickle by name; one alone has the file's."""
    return _named(_unpickle(path.read_bytes(), _NUMPY), path.stem)


def read_tensors(path: Path) -> dict[str, NDArray]:
    """Return the tensors of what torch.save wrote by name; one alone has the file's."""
    return _named(_read_tensors(path), path.stem)


def _named(found: Any, stem: str) -> dict[str, NDArray]:
    """Return arrays by name: one, those of a dict, of a pair, or of two pairs."""
    if isinstance(found, np.ndarray):
        return {stem: found}
    if isinstance(found, dict):
        return {
            f"{name}{f'_{part}' if part else ''}": array
            for name, value in found.items()
            for part, array in _named(value, "").items()
        }
    if isinstance(found, tuple | list) and len(found) == 2:
        if all(isinstance(part, np.ndarray) for part in found):
            logits, labels = found
            return {"logits": logits, "labels": labels.ravel()}
        parts = [_named(part, stem) for part in found]
        if all(set(part) == {"logits", "labels"} for part in parts):
            return {
                f"{split}_{kind}": array
                for split, part in zip(("val", "test"), parts, strict=True)
                for kind, array in part.items()
            }
    raise ArchiveError(
        "it holds neither named arrays, nor a pair of arrays, logits and labels, nor two such pairs"
    )


def read_npy(path: Path) -> NDArray:
    """Return the array of a `.npy` file."""
    with path.open("rb") as file:
        try:
            version = npy_format.read_magic(file)
            header = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}
            shape, _, dtype = header[version](file)
        except (ValueError, KeyError, EOFError) as error:
            raise ArchiveError(f"it is not what np.save writes: {error}") from None
        declared, rest = math.prod(shape) * dtype.itemsize, path.stat().st_size - file.tell()
        if dtype.hasobject or declared != rest:
            raise ArchiveError(f"it declares {declared} bytes of {dtype} but holds {rest}")
        file.seek(0)
        return np.load(file, allow_pickle=False)


def _read_table(path: Path, columns: Mapping[str, Any]) -> dict[str, NDArray]:
    classes = list(columns["logits"])
    logits, labels = [], []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, strict=True):
                labels.append(classes.index(row[columns["label"]]))
                logits.append([float(row[name]) for name in columns["logits"].values()])
    except KeyError as error:
        raise ArchiveError(f"it has no column {error}") from None
    except (csv.Error, ValueError, TypeError) as error:
        raise ArchiveError(f"row {len(labels)} of the table is damaged: {error}") from None
    return {"logits": np.array(logits).reshape(-1, len(classes)), "labels": np.array(labels, dtype=np.int64)}


def _unpickle(
    content: bytes, names: Mapping[tuple[str, str], Any], storage: Callable[[Any], Any] | None = None
) -> Any:
    """Return what a pickle holds, with arrays in the place of what stands for them."""
    try:
        _check_operations(content)
        return _finished(_Unpickler(content, names, storage).load())
    except (pickle.UnpicklingError, EOFError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise ArchiveError(f"refused to unpickle: {error}") from None


def _check_operations(content: bytes) -> None:
    """Raise an error for a pickle with an operation that arrays do not need, or with too many."""
    for count, (operation, argument, _) in enumerate(pickletools.genops(content)):
        if operation.name not in _OPERATIONS:
            raise pickle.UnpicklingError(f"the operation {operation.name} is not allowed")
        # The memory of what is numbered grows with the largest number.
        if max(count, argument if operation.name in _NUMBERED else 0) >= MOST_OPERATIONS:
            raise pickle.UnpicklingError(f"it has more than {MOST_OPERATIONS} operations")


class _Unpickler(pickle.Unpickler):
    """Knows the given names only, and nothing that they stand for elsewhere."""

    def __init__(
        self, content: bytes, names: Mapping[tuple[str, str], Any], storage: Callable[[Any], Any] | None
    ) -> None:
        super().__init__(io.BytesIO(content))
        self._names, self._storage = names, storage

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._names:
            raise pickle.UnpicklingError(f"{module}.{name} is not allowed")
        return self._names[module, name]

    def persistent_load(self, pid: Any) -> Any:
        if self._storage is None:
            raise pickle.UnpicklingError("an external object is not allowed")
        return self._storage(pid)


def _finished(found: Any) -> Any:
    """Return tuples, dicts and arrays; what a pickle never filled, or anything else, is refused."""
    if isinstance(found, _Array):
        found = found.array
    if isinstance(found, tuple | list):
        return tuple(map(_finished, found))
    if isinstance(found, dict):
        return {str(name): _finished(value) for name, value in found.items()}
    if not isinstance(found, np.ndarray):
        raise ArchiveError(f"it holds {type(found).__name__}, not an array")
    return np.array(found)


def _sizes(values: Any) -> tuple[int, ...]:
    if not isinstance(values, tuple) or not all(type(value) is int and value >= 0 for value in values):
        raise ArchiveError(f"it has the shape or strides {values!r}")
    return values


class _Kind:
    """The type of numbers that a pickle gives an array."""

    def __init__(self, code: str, *_flags: object) -> None:
        if code not in NUMBERS:
            raise ArchiveError(f"it holds an array of type {code!r}; allowed: {', '.join(sorted(NUMBERS))}")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype = self.dtype.newbyteorder(state[1])


class _Array:
    """An array that a pickle makes empty and fills with its state."""

    array: NDArray | None = None

    def __init__(self, *_arguments: object) -> None:
        pass

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _version, shape, kind, fortran, data = state
        shape, dtype = _sizes(shape), kind.dtype
        if not isinstance(data, bytes) or math.prod(shape) * dtype.itemsize != len(data):
            raise ArchiveError(f"it holds an array of shape {shape} whose data have another size")
        self.array = np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")


_NUMPY: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): None,
    ("numpy", "dtype"): _Kind,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
}


def _tensor(storage: NDArray, offset: int, shape: Any, strides: Any, *_options: object) -> NDArray:
    """Return a tensor as a view of its storage, which it must not leave."""
    first, sizes, steps = _sizes((offset,))[0], _sizes(shape), _sizes(strides)
    last = first + sum((size - 1) * step for size, step in zip(sizes, steps, strict=True))
    if 0 in sizes or math.prod(sizes) > storage.size or last >= storage.size:
        raise ArchiveError(f"it holds a tensor of shape {sizes} that is larger than its storage")
    if storage.dtype == _TORCH["torch", "BFloat16Storage"]:
        storage = (storage.astype(np.uint32) << 16).view(np.float32)
    return np.lib.stride_tricks.as_strided(
        storage[first:], sizes, [step * storage.itemsize for step in steps], writeable=False
    )


_TORCH: dict[tuple[str, str], Any] = {
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("collections", "OrderedDict"): tuple,
    ("torch", "HalfStorage"): np.dtype("<f2"),
    # The first half of the bits of float32.
    ("torch", "BFloat16Storage"): np.dtype("<u2"),
    ("torch", "FloatStorage"): np.dtype("<f4"),
    ("torch", "DoubleStorage"): np.dtype("<f8"),
    ("torch", "IntStorage"): np.dtype("<i4"),
    ("torch", "LongStorage"): np.dtype("<i8"),
}


def _read_tensors(path: Path) -> Any:
    """Return the tensors of an archive that torch.save wrote."""
    size = path.stat().st_size
    try:
        with zipfile.ZipFile(path) as archive:
            (pickled,) = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            folder = pickled.removesuffix("data.pkl")
            if archive.namelist().count(f"{folder}byteorder"):
                order = read_zip_member(archive, archive.getinfo(f"{folder}byteorder"), 16)
                if order != b"little":
                    raise ArchiveError(f"its byte order is {order!r}; allowed: little")
            storages: dict[str, NDArray] = {}

            def storage(pid: Any) -> NDArray:
                _kind, dtype, key, _device, count = pid
                if key not in storages:
                    content = read_zip_member(archive, archive.getinfo(f"{folder}data/{key}"), size)
                    storages[key] = np.frombuffer(content, dtype)
                if storages[key].dtype != dtype or storages[key].size != count:
                    raise ArchiveError(f"its storage {key!r} has another type or size than declared")
                return storages[key]

            return _unpickle(read_zip_member(archive, archive.getinfo(pickled), size), _TORCH, storage)
    except (zipfile.BadZipFile, ValueError, KeyError, RuntimeError, OSError) as error:
        raise ArchiveError(f"it is not an archive of tensors: {error}") from None
