"""The arrays of a file, or of several, by the names that they have there. Nothing in a file is executed."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from focalcal.calibration.files.language_models import SAMPLES, read_samples
from focalcal.calibration.files.tables import read_csv, read_parquet
from focalcal.common import npz
from focalcal.common.errors import UserError
from focalcal.common.messages import allowed_names
from focalcal.data.array_files import read_npy, read_pickle, read_tensors
from focalcal.data.errors import ArchiveError

NUMPY_STARTS = (b"PK", b"\x93NUMPY")
"""How the files of np.savez and np.save begin."""
TABLE_ERRORS = (pd.errors.ParserError, pd.errors.EmptyDataError, pa.ArrowException, UnicodeDecodeError)
Arrays = dict[str, NDArray]


class Format(NamedTuple):
    """How a file is read."""

    read: Callable[[Path, list[str]], Arrays]
    """Returns arrays; adds notes on what was read in another way than the file has it."""
    name: str
    repair: str


def read_files(paths: Sequence[Path], group: str, notes: list[str]) -> Arrays:
    """Return the arrays of files that belong together, such as `logits.npy` and `labels.npy`.

    Where two files have the same name of an array, the names of the files come before it.
    """
    found = {path: read_file(path, group, notes) for path in paths}
    names = [name for arrays in found.values() for name in arrays]
    if len(set(names)) == len(names):
        return {name: array for arrays in found.values() for name, array in arrays.items()}
    return {f"{path.stem}_{name}": array for path, arrays in found.items() for name, array in arrays.items()}


def read_file(path: Path, group: str, notes: list[str]) -> Arrays:
    """Return the arrays of a file, or of a folder with `.npy` files or samples of a language model."""
    if path.is_dir():
        return _read_folder(path, notes)
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise UserError(f"{path} has the suffix {suffix!r}; allowed: {', '.join(FORMATS)}; convert the file")
    if not path.is_file():
        raise UserError(f"{path} does not exist; allowed: an existing file; correct the path")
    known = FORMATS[suffix]
    try:
        arrays = known.read(path, notes)
    except ArchiveError as error:
        raise UserError(
            f"{path} is not a readable {known.name} ({error}); what may run code when read is refused; "
            f"allowed: plain arrays; {known.repair}"
        ) from None
    except (SafetensorError, *TABLE_ERRORS, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise UserError(f"{path} is not a readable {known.name} ({reason}); {known.repair}") from None
    return _of_group(arrays, group, path, notes)


def _read_folder(path: Path, notes: list[str]) -> Arrays:
    """Return the arrays of a folder: the samples of a language model, or one array per `.npy` file."""
    if any(path.rglob(SAMPLES)):
        return read_samples(path, notes)
    files = sorted(path.glob("*.npy"))
    if not files:
        raise UserError(
            f"{path} is a folder without .npy files and {SAMPLES}; allowed: a folder with these, or a file "
            f"({', '.join(FORMATS)}); name the file in it"
        )
    return read_files(files, "", notes)


def _of_group(arrays: Arrays, group: str, path: Path, notes: list[str]) -> Arrays:
    """Return the arrays of one group, such as DATASET/MODEL, without its name."""
    groups = sorted({name.rpartition("/")[0] for name in arrays})
    if group and group not in groups:
        raise UserError(f"--group is {group!r}; {allowed_names(group, groups)}")
    if not group and len(groups) > 1:
        shown = ", ".join(groups[:5]) + (", ..." if len(groups) > 5 else "")
        raise UserError(
            f"{path} has arrays in {len(groups)} groups ({shown}); allowed: one; say which on the command "
            f"line: --group {groups[0] or groups[1]}"
        )
    chosen = group or groups[0] if groups else ""
    if chosen:
        notes.append(f"the arrays are those of {chosen!r}")
    return {
        name.rpartition("/")[2]: array for name, array in arrays.items() if name.rpartition("/")[0] == chosen
    }


def _read_npz(path: Path, _notes: list[str]) -> Arrays:
    with path.open("rb") as file:
        known = file.read(6).startswith(NUMPY_STARTS)
    if not known:  # np.load takes all else for a pickle
        raise UserError(
            f"{path} is not a readable .npz file but of another format (a pickle, which could run code when "
            f"loaded, is refused); allowed: what np.savez writes; write it again"
        )
    return npz.read_npz(path)


def _read_safetensors(path: Path, _notes: list[str]) -> Arrays:
    try:
        return load_file(path)
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path} has a tensor type that NumPy lacks ({error}); allowed: float16, float32, float64 and "
            f"integers; convert bfloat16 tensors with .float() first"
        ) from None


def _read_hdf5(path: Path, _notes: list[str]) -> Arrays:
    """Return every array of the file, by its path in it."""
    try:
        import h5py  # noqa: PLC0415 - only this format needs it
    except ImportError:
        raise UserError(f"{path} needs the package 'h5py'; install it with: pip install h5py") from None
    found: Arrays = {}

    def add(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.dtype.kind in "fiub":
            found[name] = np.asarray(item)
        elif isinstance(item, h5py.Dataset) and h5py.check_string_dtype(item.dtype):
            found[name] = np.asarray(item.asstr()[...]).astype(str)

    with h5py.File(path, "r") as file:
        file.visititems(add)
    return found


def _read_lines(path: Path, notes: list[str]) -> Arrays:
    try:
        return read_samples(path, notes)
    except json.JSONDecodeError as error:
        raise UserError(
            f"{path} is not a file with one JSON object per line ({error}); write it again"
        ) from None


FORMATS = {
    ".npz": Format(_read_npz, ".npz file", "write it again"),
    ".npy": Format(lambda path, _: {path.stem: read_npy(path)}, ".npy file", "write it again with np.save"),
    ".safetensors": Format(_read_safetensors, "safetensors file", "write it again with safetensors"),
    ".csv": Format(read_csv, "CSV table", "write it again with a header"),
    ".parquet": Format(read_parquet, "Parquet table", "write it again"),
    ".jsonl": Format(_read_lines, "file of samples", "write it again with lm_eval --log_samples"),
}
FORMATS[".tsv"] = FORMATS[".txt"] = FORMATS[".csv"]
FORMATS[".pt"] = FORMATS[".pth"] = Format(
    lambda path, _: read_tensors(path), "file of tensors", "torch.save a dict of tensors"
)
FORMATS[".p"] = FORMATS[".pkl"] = FORMATS[".pickle"] = Format(
    lambda path, _: read_pickle(path), "pickle of arrays", "save the arrays with np.savez"
)
FORMATS[".h5"] = FORMATS[".hdf5"] = Format(_read_hdf5, "HDF5 file", "write it again")
"""How a file is read, by its suffix."""
