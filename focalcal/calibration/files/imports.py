"""Logits of models trained elsewhere, from the usual file formats.

- `.npz` and `.safetensors`: arrays `val_logits`, `val_labels`, `test_logits`, `test_labels` (or `logits_val`,
  ...) and, if it is known, `val_posterior` and `test_posterior`.
- `.csv` and `.parquet`: one row per sample; a column `label`, a column `split` with `val` or `test`, and one
  column per class. If the class columns are numbered (`0`, `1`, ... or `class_1`, `class_2`, ...), these
  numbers say which class a column is, wherever it stands, and labels mean these numbers. Otherwise labels are
  names of class columns, or their positions 0..k-1. Any other column is refused: one without a name, one
  beside numbered class columns, and one of whole numbers beside class columns that have fractions.

With `split: halves` a file has one split only: arrays `logits`, `labels` and, if it is known, `posterior`, or
a table without the column `split`. One half of its samples validates and the other tests.

With `kind: probabilities` the numbers are probabilities instead of logits, and their logarithms are taken.
Formats that run code when they are read (pickle, and so PyTorch's) are refused.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from focalcal.calibration.files.logits_io import SPLITS, RunLogits, Split
from focalcal.calibration.files.shapes import ROW_SUM_TOLERANCE, checked_splits
from focalcal.common import npz
from focalcal.common.checksums import checksum
from focalcal.common.errors import UserError

PICKLE_SUFFIXES = (".pkl", ".pickle", ".p", ".pt", ".pth", ".bin", ".ckpt", ".joblib", ".npy")
ONE_SPLIT = ("logits", "labels", "posterior")
"""Arrays of a file with one split only."""
NUMPY_STARTS = (b"PK", b"\x93NUMPY")
"""How the files of np.savez and np.save begin."""
UNNAMED_COLUMN = re.compile(r"\s*|Unnamed: \d+|__index_level_\d+__")
"""How pandas reads, or writes, the column of a row index."""
NUMBERED_COLUMN = re.compile(r"(.*?)(\d{1,18})", re.DOTALL)
"""A name that ends with a number: what comes before it, and the number."""
CLASS_PREFIX = re.compile(r"|(?:class|logit|score|prob|output)[a-z]*[ _.-]?", re.IGNORECASE)
"""What comes before the number of a class column, where not all columns are numbered alike."""


@dataclass(frozen=True)
class Imported:
    """Logits of a model trained elsewhere."""

    logits: RunLogits
    checksum: str
    """SHA-256 of the file that they were read from, or of the checksums of a published network's files."""
    warnings: tuple[str, ...] = ()
    """What the user should know about the file, one sentence each."""


class Labelled(NamedTuple):
    """What a file holds."""

    splits: RunLogits | Split
    """Validation and test samples, or samples of one split."""
    checksum: str
    """SHA-256 of the file."""
    warnings: tuple[str, ...]
    """What the user should know about the file, one sentence each."""


def import_logits(path: Path, kind: str, *, halves: bool = False, swapped: bool = False) -> Imported:
    """Return the checked logits of `path`; a UserError names what is wrong and the repair.

    With `halves` the file has one split only; see `divided`.
    """
    found = read_splits(path, kind, share=0.5 if halves else None, swapped=swapped)
    if isinstance(found.splits, Split):
        raise UserError(
            f"{path} has one split only; allowed: validation and test samples; add those (in a table with a "
            f"column 'split'), or divide the file with `split: halves`"
        )
    return Imported(found.splits, found.checksum, found.warnings)


def read_splits(path: Path, kind: str, *, share: float | None = None, swapped: bool = False) -> Labelled:
    """Return the checked logits of `path`, which may have one split only; a UserError says what is wrong.

    With a `share` it must have one split only, which is divided; see `divided`.
    """
    arrays = _read_arrays(path)
    if share is not None:
        arrays = divided(arrays, str(path), share, swapped=swapped)
    elif "logits" in arrays and not any(name.startswith("val_") for name in arrays):
        arrays = {f"val_{name}": arrays[name] for name in ONE_SPLIT if name in arrays}
    warnings: list[str] = []
    return Labelled(checked_splits(arrays, kind, str(path), warnings), checksum(path), tuple(warnings))


def in_halves(arrays: Mapping[str, NDArray], source: str, *, swapped: bool) -> dict[str, NDArray]:
    """Return validation and test arrays from those of one split, which is divided in halves."""
    return divided(arrays, source, 0.5, swapped=swapped)


def divided(
    arrays: Mapping[str, NDArray], source: str, share: float, *, swapped: bool = False
) -> dict[str, NDArray]:
    """Return validation and test arrays from `logits`, `labels` and, if it is known, `posterior`.

    The n samples are permuted by `RandomState(0).permutation(n)`, so that sets of one length, such as those
    of one dataset, are divided alike. The first part (n * share, rounded down) validates and the rest tests,
    or, if `swapped`, the other way round; each part keeps the order of the file.
    """
    found = {kind: arrays[kind] for kind in ONE_SPLIT if kind in arrays}
    lengths = {kind: len(array) if array.ndim else 0 for kind, array in found.items()}
    if not {"logits", "labels"} <= set(found) or len(set(lengths.values())) > 1:
        described = ", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "none"
        raise UserError(
            f"{source} has the arrays {described}; allowed with `split: halves`: logits (n, k), labels (n,); "
            f"rename them, or leave `split` out for a file with validation and test samples"
        )
    order = np.random.RandomState(0).permutation(lengths["logits"])
    middle = int(len(order) * share)
    parts = [np.sort(order[:middle]), np.sort(order[middle:])]
    return {
        f"{split}_{kind}": array[rows]
        for split, rows in zip(SPLITS, reversed(parts) if swapped else parts, strict=True)
        for kind, array in found.items()
    }


def import_record(spec: Mapping[str, Any], imported: Imported, origin: Mapping[str, Any]) -> dict[str, Any]:
    """Return the run's record: what was imported, how it was declared, and which code did it."""
    samples, classes = imported.logits.val.logits.shape
    return {
        "status": "ok",
        "spec": dict(spec),
        "seed": spec["seed"],
        "data_checksum": imported.checksum,
        "device": None,
        "wall_seconds": None,
        "classes": classes,
        "sizes": {"val": samples, "test": len(imported.logits.test.labels)},
        "warnings": list(imported.warnings),
        "provenance": dict(origin),
    }


def _read_arrays(path: Path) -> dict[str, NDArray]:
    """Return the arrays of a file under the names that the suite uses."""
    suffix = path.suffix.lower()
    if path.is_dir():
        raise UserError(f"{path} is a folder; allowed: a file ({', '.join(READERS)}); name the file in it")
    if suffix in PICKLE_SUFFIXES:
        raise UserError(
            f"{path} has the suffix {suffix!r}, of a format that may run code when read, or holds no names; "
            f"allowed: {', '.join(READERS)}; save the arrays with np.savez or safetensors instead"
        )
    if suffix not in READERS:
        raise UserError(f"{path} has the suffix {suffix!r}; allowed: {', '.join(READERS)}; convert the file")
    if not path.is_file():
        raise UserError(f"{path} does not exist; allowed: an existing file; correct the path")
    reader, format_name, repair = READERS[suffix]
    try:
        arrays = reader(path)
    except (SafetensorError, *_TABLE_ERRORS, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise UserError(f"{path} is not a readable {format_name} ({reason}); {repair}") from None
    named = {}
    for split, kind in product(SPLITS, ("logits", "labels", "posterior")):
        for name in (f"{kind}_{split}", f"{split}_{kind}"):
            if name in arrays:
                named[f"{split}_{kind}"] = arrays[name]
    return named or arrays


def _read_npz(path: Path) -> dict[str, NDArray]:
    with path.open("rb") as file:
        known = file.read(6).startswith(NUMPY_STARTS)
    if not known:  # np.load takes all else for a pickle
        raise UserError(
            f"{path} is not a readable .npz file but of another format (a pickle, which could run code when "
            f"loaded, is refused); allowed: what np.savez writes; write it again"
        )
    return npz.read_npz(path)


def _read_safetensors(path: Path) -> dict[str, NDArray]:
    try:
        return load_file(path)
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path} has a tensor type that NumPy lacks ({error}); allowed: float16, float32, float64 and "
            f"integers; convert bfloat16 tensors with .float() first"
        ) from None


def _read_csv_table(path: Path) -> dict[str, NDArray]:
    return _from_table(pd.read_csv(path), path)


def _read_parquet_table(path: Path) -> dict[str, NDArray]:
    columns = pd.Index(pq.read_schema(path).names)
    if not columns.is_unique:
        raise UserError(
            f"{path} has the column {columns[columns.duplicated()][0]!r} more than once; allowed: each "
            f"once; rename or drop it"
        )
    return _from_table(pd.read_parquet(path), path)


def _from_table(table: pd.DataFrame, path: Path) -> dict[str, NDArray]:
    """Return the arrays of a table with columns `label`, one per class and, if it has both, `split`."""
    if "label" not in table.columns:
        raise UserError(
            f"{path} has no column 'label'; it has {', '.join(map(str, table.columns[:5]))}, ...; "
            f"allowed: columns label, split (val or test) and one per class; add or rename it"
        )
    if table.empty:
        raise UserError(f"{path} has no rows; allowed: one row per sample; write it again with its samples")
    scores = _class_scores(table.drop(columns=["label", "split"], errors="ignore"), path)
    labels = _class_positions(table["label"], [str(column) for column in scores.columns], path)
    if "split" not in table.columns:
        return {"logits": scores.to_numpy(), "labels": labels}
    unknown = sorted(set(map(str, table["split"])) - set(SPLITS))
    if unknown:
        raise UserError(
            f"{path}: column 'split' has {unknown[0]!r}; allowed: {', '.join(SPLITS)}; "
            f"rename it or drop its rows"
        )
    chosen = {split: (table["split"] == split).to_numpy() for split in SPLITS}
    logits = {f"{split}_logits": scores.to_numpy()[rows] for split, rows in chosen.items()}
    return logits | {f"{split}_labels": labels[rows] for split, rows in chosen.items()}


def _class_scores(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return a table's class columns as float64, in the order of their numbers if they have any.

    A UserError names a column that is not a class.
    """
    for column in table.columns:
        if UNNAMED_COLUMN.fullmatch(str(column)):
            raise UserError(
                f"{path}: column {column!r} is a row index, not a class; allowed: besides label and split "
                f"only columns of class scores; write the table with index=False"
            )
        if table[column].dtype.kind not in "fiu":
            raise UserError(
                f"{path}: column {column!r} holds {table[column].dtype}, not numbers; allowed: besides label "
                f"and split only columns of class scores; drop the others"
            )
    scores = table.astype(np.float64)
    columns = [str(column) for column in table.columns]
    _check_all_numbered(columns, path)
    numbers = _column_numbers(columns)
    if numbers is None:
        _check_fractions(scores, path)
        return scores
    order = np.argsort(numbers, kind="stable")
    for first, second in pairwise(order):
        if numbers[first] == numbers[second]:
            raise UserError(
                f"{path}: columns {columns[first]!r} and {columns[second]!r} have the same number; allowed: "
                f"one column per class; drop or rename one"
            )
    return scores.iloc[:, order]


def _column_numbers(columns: list[str]) -> list[int] | None:
    """Return the numbers of class columns that differ in nothing else; None if they do."""
    matches = [NUMBERED_COLUMN.fullmatch(name) for name in columns]
    if not all(matches) or len({match[1] for match in matches}) > 1:
        return None
    return [int(match[2]) for match in matches]


def _check_all_numbered(columns: list[str], path: Path) -> None:
    """Raise a UserError that names a column which is not numbered as two or more class columns are."""
    matches = ((name, NUMBERED_COLUMN.fullmatch(name)) for name in columns)
    prefixes = {name: match[1] for name, match in matches if match and CLASS_PREFIX.fullmatch(match[1])}
    if len(prefixes) < 2:
        return
    prefix = Counter(prefixes.values()).most_common(1)[0][0]
    others = [name for name in columns if prefixes.get(name) != prefix]
    if others:
        numbered = [name for name in prefixes if prefixes[name] == prefix]
        raise UserError(
            f"{path}: column {others[0]!r} is not numbered as the class columns {numbered[0]!r} to "
            f"{numbered[-1]!r} are; allowed: besides label and split only those; drop or rename it"
        )


def _check_fractions(scores: pd.DataFrame, path: Path) -> None:
    """Raise a UserError that names a column of whole numbers, such as an id, where others have fractions.

    A column of zeros may be a model's reference class, and rows that sum to 1 have no column too many.
    """
    values = scores.to_numpy()
    if np.all(np.abs(values.sum(axis=1) - 1) <= ROW_SUM_TOLERANCE):
        return
    whole = np.all(np.isfinite(values) & (values == np.rint(values)), axis=0)
    suspects = scores.columns[whole & np.any(values != 0, axis=0)]
    if len(suspects) and not whole.all():
        raise UserError(
            f"{path}: column {suspects[0]!r} holds only whole numbers, but {scores.columns[~whole][0]!r} "
            f"fractions; allowed: besides label and split only columns of class scores; drop it, or if it is "
            f"a class, number all class columns: class_0, class_1, ..."
        )


def _class_positions(labels: pd.Series, classes: list[str], path: Path) -> NDArray:
    """Return the position of each label's class column: given, or looked up by its number or its name."""
    numbers = _column_numbers(classes)
    if labels.dtype.kind in "fiu":
        if numbers is None or (labels.dtype.kind == "f" and (labels % 1 != 0).any()):
            return labels.to_numpy()  # what is not a class there is refused with the arrays of any other file
        positions = pd.Index(numbers).get_indexer(labels)
    else:
        positions = pd.Index(classes).get_indexer(labels.map(str))
    unknown = labels[positions < 0].tolist()
    if unknown:
        raise UserError(
            f"{path}: column 'label' has {unknown[0]!r}, which is not a class column; allowed: "
            f"{', '.join(classes[:5])}{', ...' if len(classes) > 5 else ''}; correct the label or the header"
        )
    return positions


_TABLE_ERRORS = (pd.errors.ParserError, pd.errors.EmptyDataError, pa.ArrowException, UnicodeDecodeError)
READERS = {
    ".npz": (_read_npz, ".npz file", "write it again"),
    ".safetensors": (_read_safetensors, "safetensors file", "write it again with safetensors"),
    ".csv": (_read_csv_table, "CSV table", "write it again with a header"),
    ".parquet": (_read_parquet_table, "Parquet table", "write it again"),
}
"""How a file is read, by its suffix: the function, the name of the format and the repair."""
