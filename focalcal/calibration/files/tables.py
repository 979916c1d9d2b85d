"""Tables of logits: one row per sample, a column of labels and one column per class.

Separators are commas, semicolons, tabs or bars; with semicolons, decimals may have a comma. The column of
labels is called `label`, or as in `names.ROLES`; the column `split`, if there is one, has the words of
`names.SPLIT_WORDS`. If the class columns are numbered (`0`, `1`, ... or `class_1`, `class_2`, ...), these
numbers say which class a column is, wherever it stands, and labels mean these numbers. Otherwise labels are
names of class columns, or their positions 0..k-1. A row index and columns of texts are left out; any other
column is refused: one beside numbered class columns, and one of whole numbers beside class columns that have
fractions. A column of texts or whole numbers that is called `task`, or as in `names.ROLES`, holds the tasks.
"""

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from numpy.typing import NDArray

from focalcal.calibration.files.logits_io import SPLITS
from focalcal.calibration.files.names import ROLES, SPLIT_WORDS
from focalcal.calibration.files.shapes import ROW_SUM_TOLERANCE
from focalcal.common.errors import UserError
from focalcal.common.npz import check_size

UNNAMED_COLUMN = re.compile(r"\s*|Unnamed: \d+|__index_level_\d+__")
"""How pandas reads, or writes, the column of a row index."""
CLASS_FRAME = re.compile(r"[ _.#-]*(?:(?:class|logit|score|prob|output)[a-z]*)?[ _.#-]*", re.IGNORECASE)
"""The name of a class column with # for its number, where not all columns are numbered alike."""
PROBABILITY_PREFIX = re.compile(r"p(?:rob[a-z]*)?[ _.-]", re.IGNORECASE)
"""The beginning of the names of class columns that hold probabilities."""
NUMBER = re.compile(r"\s*[-+]?\d+(?:\.(\d+))?(?:\.\d+)?(?:e[-+]?\d+)?\s*", re.IGNORECASE)
"""A number instead of a column's name, as in a table without a header; pandas adds .1 to repeated ones."""
SEPARATORS = ",;\t|"


def read_csv(path: Path, notes: list[str]) -> dict[str, NDArray]:
    """Return the arrays of a CSV table."""
    with path.open(encoding="utf-8-sig") as file:
        header = file.readline()
    separator = max(SEPARATORS, key=header.count)
    decimal = "."
    if separator != ",":
        notes.append(f"columns are separated by {'tabs' if separator == chr(9) else repr(separator)}")
        with path.open(encoding="utf-8-sig") as file:
            file.readline()
            first = file.readline()
        decimal = "," if re.search(r"\d,\d", first) and not re.search(r"\d\.\d", first) else "."
    table = pd.read_csv(path, sep=separator, decimal=decimal, encoding="utf-8-sig")
    return _from_table(table, path, notes)


def read_parquet(path: Path, notes: list[str]) -> dict[str, NDArray]:
    """Return the arrays of a Parquet table."""
    described = pq.read_metadata(path)
    check_size(path, described.num_rows * described.num_columns * np.dtype(np.float64).itemsize)
    columns = pd.Index(pq.read_schema(path).names)
    if not columns.is_unique:
        raise UserError(
            f"{path} has the column {columns[columns.duplicated()][0]!r} more than once; allowed: each "
            f"once; rename or drop it"
        )
    return _from_table(pd.read_parquet(path), path, notes)


def _from_table(table: pd.DataFrame, path: Path, notes: list[str]) -> dict[str, NDArray]:
    """Return the arrays of a table: logits or probabilities, labels if it has any, of each split."""
    numbers = [NUMBER.fullmatch(str(column)) for column in table.columns]
    if all(numbers) and any(found and (found[1] or "").strip("0") for found in numbers):
        raise UserError(
            f"{path} begins with numbers ({', '.join(map(str, table.columns[:3]))}, ...); allowed: names of "
            f"the columns in the first line, as class_0,class_1,label; add them"
        )
    label = _label_column(table, path)
    if table.empty:
        raise UserError(f"{path} has no rows; allowed: one row per sample; write it again with its samples")
    table = _of_splits(table, path, notes)
    tasks = [
        column
        for column in table.columns
        if str(column).strip().lower() in ROLES["tasks"] and table[column].dtype.kind != "f"
    ]
    beside = [label or "", "split", *tasks]
    scores = _class_scores(table.drop(columns=beside, errors="ignore"), path, notes)
    columns = [str(column) for column in scores.columns]
    if len(columns) == 1 and re.search(r"(?<!\d)0$", columns[0]):
        raise UserError(
            f"{path} has one class column, {columns[0]!r}, which is that of class 0 by its name; allowed: "
            f"that of class 1, or a column per class; add that of class 1, or correct the name"
        )
    arrays = {_kind(scores): scores.to_numpy()}
    if label is not None:
        if label != "label":
            notes.append(f"column {label!r} holds the labels")
        # Labels of one column of scores are what they are.
        one = len(columns) == 1
        arrays["labels"] = table[label].to_numpy() if one else _class_positions(table[label], columns, path)
    if "split" not in table.columns:
        return arrays | {str(column): table[column].astype(str).to_numpy(dtype=str) for column in tasks}
    chosen = {split: (table["split"] == split).to_numpy() for split in SPLITS}
    return {
        f"{split}_{kind}": array[rows] for split, rows in chosen.items() for kind, array in arrays.items()
    }


def _label_column(table: pd.DataFrame, path: Path) -> str | None:
    """Return the name of the column of labels; None if no column has such a name."""
    found = [column for column in table.columns if str(column).strip().lower() in ROLES["labels"]]
    if "label" in found:
        return "label"
    if len(found) > 1:
        raise UserError(
            f"{path} has the columns {found[0]!r} and {found[1]!r}, which could both be the labels; allowed: "
            f"one; drop or rename the other"
        )
    return found[0] if found else None


def _of_splits(table: pd.DataFrame, path: Path, notes: list[str]) -> pd.DataFrame:
    """Return the rows of validation and test samples, with these names of their splits."""
    if "split" not in table.columns:
        return table
    names = {word: split for split, words in SPLIT_WORDS.items() for word in words}
    splits = table["split"].map(lambda value: names.get(str(value).strip().lower(), str(value)))
    unknown = sorted(set(splits) - set(SPLIT_WORDS))
    if unknown:
        raise UserError(
            f"{path}: column 'split' has {unknown[0]!r}; allowed: {', '.join(SPLITS)}; "
            f"rename it or drop its rows"
        )
    kept = splits != "train"
    if not kept.all():
        notes.append(f"{(~kept).sum()} training samples are left out: the model has seen them")
    return table.assign(split=splits)[kept]


def _kind(scores: pd.DataFrame) -> str:
    """Return what the names of the class columns say that they hold, if the numbers agree."""
    values = scores.to_numpy()
    whole = values.shape[1] == 1 or bool(np.all(np.abs(values.sum(axis=1) - 1) <= ROW_SUM_TOLERANCE))
    named = all(PROBABILITY_PREFIX.match(f"{column}_") for column in scores.columns)
    unit = bool(np.all((values >= 0) & (values <= 1)))
    return "probabilities" if named and whole and unit else "logits"


def _class_scores(table: pd.DataFrame, path: Path, notes: list[str]) -> pd.DataFrame:
    """Return a table's class columns as float64, in the order of their numbers if they have any.

    A row index and texts cannot be scores and are left out; a UserError names any other column that is not a
    class.
    """
    foreign = [
        column
        for column in table.columns
        if UNNAMED_COLUMN.fullmatch(str(column)) or table[column].dtype.kind not in "fiu"
    ]
    if foreign:
        shown = ", ".join(repr(str(column)) for column in foreign)
        notes.append(f"left out, since they hold a row index or no numbers: {shown}")
    scores = table.drop(columns=foreign).astype(np.float64)
    if scores.shape[1] == 0:
        raise UserError(
            f"{path} has no column of class scores; allowed: besides label and split one column of numbers "
            f"per class; add them"
        )
    columns = [str(column) for column in scores.columns]
    _check_all_numbered(columns, path)
    numbers = _column_numbers(columns, path)
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


def _column_numbers(columns: list[str], path: Path) -> list[int] | None:
    """Return the numbers of class columns that differ in nothing else, wherever they stand; None if they do.

    A UserError names columns in which several numbers differ.
    """
    frames = {_frame(name) for name in columns}
    if len(frames) != 1 or "#" not in frames.pop():
        return None
    found = ([int(digits) for digits in re.findall(r"\d+", name)] for name in columns)
    places = list(zip(*found, strict=True))
    varying = [numbers for numbers in places if len(set(numbers)) > 1] or places[-1:]
    if len(varying) > 1:
        raise UserError(
            f"{path}: the names {columns[0]!r} and {columns[-1]!r} of columns differ in {len(varying)} "
            f"numbers; allowed: one, that of the class; rename them: class_0, class_1, ..."
        )
    return list(varying[0])


def _frame(name: str) -> str:
    """Return the name of a column with # for each number."""
    return re.sub(r"\d+", "#", name)


def _check_all_numbered(columns: list[str], path: Path) -> None:
    """Raise a UserError that names a column which is not numbered as two or more class columns are."""
    frames = {name: _frame(name) for name in columns}
    numbered = [name for name, frame in frames.items() if "#" in frame and CLASS_FRAME.fullmatch(frame)]
    if len(numbered) < 2:
        return
    usual = Counter(frames[name] for name in numbered).most_common(1)[0][0]
    others = [name for name in columns if frames[name] != usual]
    if others:
        numbered = [name for name in numbered if frames[name] == usual]
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
    numbers = _column_numbers(classes, path)
    if labels.dtype.kind in "fiu":
        if numbers is None or (labels.dtype.kind == "f" and (labels % 1 != 0).any()):
            return labels.to_numpy()  # what is not a class there is refused with the arrays of any other file
        positions = pd.Index(numbers).get_indexer(labels)
    else:
        # Of prob_cat and prob_dog, labels may say cat and dog.
        known = set(labels.map(str)) <= set(classes)
        shorter = classes if known else [re.split(r"[ _.-]", name, maxsplit=1)[-1] for name in classes]
        positions = pd.Index(shorter).get_indexer(labels.map(str))
    unknown = labels[positions < 0].tolist()
    if unknown:
        raise UserError(
            f"{path}: column 'label' has {unknown[0]!r}, which is not a class column; allowed: "
            f"{', '.join(classes[:5])}{', ...' if len(classes) > 5 else ''}; correct the label or the header"
        )
    return positions
