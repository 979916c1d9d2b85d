"""Small tables of numbers and categories, one row per sample and its class last, in the prepared form.

A registry entry of kind `table` names the `collection` that has its file: scikit-learn, which is installed,
or an entry of `registry/collections/`, which is fetched. Each seed has its own stratified split.
"""

import csv
import importlib.metadata
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from focalcal.common.samples import SPLITS
from focalcal.data.download import ExpectedFile, problem_with
from focalcal.data.errors import SourceError
from focalcal.data.fetch import Obtained, obtain
from focalcal.data.prepared import Preparation, assembled
from focalcal.data.registry import BUNDLED_COLLECTION, load_collection
from focalcal.data.splits import stratified

MISSING = {"", "?", "<null>", "na", "nan"}
"""How tables write a missing value, in lower case. None of the built-in tables has one."""


def prepare_table(entry: Mapping[str, Any], sizes: Mapping[str, int], cache: Path) -> Preparation:
    """Return the table of a registry entry; downloads go to `cache`.

    `sizes` are those of the splits; they need not use every sample.
    """
    obtained = _obtain_table(entry, cache)
    rows = _read_rows(obtained.folder / entry["file"]["name"], entry["file"]["name"])
    class_names = None
    if entry["collection"] == BUNDLED_COLLECTION:
        # The first line has the numbers of samples and features, then the names of the classes.
        class_names = rows.pop(0)[2:]
    inputs, encoding = _encode(rows, entry.get("nominal", ()), entry.get("unused", ()))
    labels, classes = _label_numbers([row[-1] for row in rows])
    found = {"samples": len(rows), "classes": len(classes), "features": inputs.shape[1]}
    expected = {
        "samples": entry["counts"]["all"],
        "classes": entry["classes"],
        "features": entry["shape"][0],
    }
    if found != expected:
        raise ValueError(f"has {found} instead of {expected}")
    wanted = [sizes[split] for split in SPLITS]
    indices = dict(zip(SPLITS, stratified(labels, wanted, seed=0), strict=True))
    split_sizes = np.array(wanted, dtype=np.int64)
    data = assembled(inputs, labels, indices, len(classes), split_sizes=split_sizes)
    return Preparation(data, obtained.source, class_names or classes, encoding=encoding)


def _obtain_table(entry: Mapping[str, Any], cache: Path) -> Obtained:
    """Return the folder that has the verified file of a table."""
    if entry["collection"] != BUNDLED_COLLECTION:
        return obtain(entry["collection"], load_collection(entry["collection"]), cache)
    # Found without importing scikit-learn, which takes a second.
    folder = Path(importlib.util.find_spec("sklearn").origin).parent / "datasets" / "data"
    file = ExpectedFile(**entry["file"])
    problem = problem_with(folder / file.name, file) if (folder / file.name).is_file() else "is missing"
    version = importlib.metadata.version("scikit-learn")
    if problem is not None:
        raise SourceError(f"{file.name} of scikit-learn {version}: {problem}; install the pinned version")
    return Obtained(folder, f"bundled with scikit-learn {version}")


def _read_rows(path: Path, name: str) -> list[list[str]]:
    """Return the cells of each line, without the spaces around them."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file) if row]
    for number, row in enumerate(rows, start=1):
        if any(cell.lower() in MISSING for cell in row):
            raise ValueError(f"line {number} of {name} has a missing value; leave such rows out")
    return rows


def _encode(
    rows: Sequence[Sequence[str]], nominal: Sequence[int], unused: Sequence[int]
) -> tuple[np.ndarray, dict[str, Any]]:
    """Return float32 features (n, d) and how each column became one or several of them.

    A column whose values are not all numbers, or that `nominal` lists, becomes one indicator per category, in
    alphabetical order; any other is one feature. Columns are counted from 0, and `unused` ones are left out.
    """
    features, categories = [], {}
    for position, column in enumerate(list(zip(*rows, strict=True))[:-1]):
        if position in unused:
            continue
        numbers = None if position in nominal else _parsed_numbers(column)
        if numbers is None:
            values = sorted(set(column))
            categories[str(position)] = values
            features.append((np.array(column)[:, None] == np.array(values)).astype(np.float32))
        else:
            features.append(numbers.astype(np.float32)[:, None])
    encoding = {
        "unused_columns": list(unused),
        "one_hot_columns": categories,
        "missing_values": "none; a table with missing values is refused",
        "standardisation": "mean and standard deviation of the training samples of each split",
        "splits": "stratified by class, drawn by the seed of each run; the counts here are those of seed 0",
    }
    return np.concatenate(features, axis=1), encoding


def _parsed_numbers(column: Sequence[str]) -> np.ndarray | None:
    try:
        return np.array(column, dtype=np.float64)
    except ValueError:
        return None


def _label_numbers(column: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """Return int64 labels and the classes in their order: by number if all are numbers, else by name."""
    numeric = _parsed_numbers(sorted(set(column))) is not None
    classes = sorted(set(column), key=float if numeric else None)
    number_of = {name: number for number, name in enumerate(classes)}
    return np.array([number_of[name] for name in column], dtype=np.int64), classes
