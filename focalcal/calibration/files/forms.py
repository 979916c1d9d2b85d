"""Scores with a column per class and labels that number the columns, from the forms that people have.

Each change is told in a note. What has two readings is a question, in one line with the option that answers
it.
"""

import re

import numpy as np
from numpy.typing import NDArray

from focalcal.common.errors import UserError
from focalcal.common.messages import unknown_name

IGNORED_LABEL = -100
"""The label of positions that the losses of Hugging Face and PyTorch leave out."""


def with_columns(
    values: NDArray, labels: NDArray | None, kind: str, name: str, notes: list[str]
) -> tuple[NDArray, NDArray | None]:
    """Return scores (n, k) and their labels, (n,) or (n, k), also from one column or from more axes.

    What is neither is returned as it is.
    """
    if values.ndim > 2 and labels is not None and labels.shape == values.shape[:-1]:
        notes.append(f"{name}: {values.shape} is read as {labels.size} samples")
        return values.reshape(-1, values.shape[-1]), labels.ravel()
    if labels is not None and labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    column = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if column.ndim != 1 or column.dtype.kind not in "iubf":
        return values, labels
    if column.dtype.kind != "f":
        raise UserError(
            f"{name} has one whole number per sample: predicted classes, not scores; allowed: logits (n, k), "
            f"or one column of logits of class 1; save the model's outputs"
        )
    two_classes = labels is None or labels.dtype.kind in "USO" or len(np.unique(labels)) <= 2
    return (_of_two_classes(column, kind, name, notes) if two_classes else values), labels


def _of_two_classes(column: NDArray, kind: str, name: str, notes: list[str]) -> NDArray:
    """Return two columns from the logit or the probability of class 1."""
    unit = bool(np.all((column >= 0) & (column <= 1)))
    if kind == "logits" and unit:
        raise UserError(
            f"{name} has one column of numbers from 0 to 1, which look like probabilities of class 1; "
            f"allowed: logits, or probabilities declared as `kind: probabilities` (on the command line "
            f"--kind probabilities); declare them"
        )
    if kind == "probabilities":
        notes.append(f"{name} is one column: the probability of class 1")
        return np.column_stack([1 - column, column])
    notes.append(f"{name} is one column: the logit of class 1, and 0 is that of class 0")
    return np.column_stack([np.zeros_like(column), column])


def numbered(
    scores: NDArray,
    labels: NDArray,
    name: str,
    names: tuple[str, ...],
    first_label: int | None,
    notes: list[str],
) -> tuple[NDArray, NDArray]:
    """Return scores, and labels as positions of columns where they have only one meaning, else as they are.

    Samples whose label is to be ignored are left out of both.
    """
    if scores.ndim != 2:
        return scores, labels
    if labels.shape == scores.shape and labels.dtype.kind in "iubf":
        return scores, _of_one_hot(labels, name, notes)
    if labels.ndim != 1 or len(labels) != len(scores) or not len(labels):
        return scores, labels
    if labels.dtype.kind in "USO":
        texts = labels.astype(str)
        if names or not all(re.fullmatch(r"\d{1,9}", text) for text in set(texts.tolist())):
            return scores, _of_names(texts, scores.shape[1], name, names, notes)
        labels = texts.astype(np.int64)
    if labels.dtype.kind not in "iuf" or np.any(labels % 1):
        return scores, labels
    kept = labels != IGNORED_LABEL
    if not kept.all() and first_label is None:
        notes.append(f"{name}: {(~kept).sum()} labels of {IGNORED_LABEL} are left out with their samples")
        scores, labels = scores[kept], labels[kept]
    return scores, _from_zero(scores, labels, name, first_label, notes) if len(labels) else labels


def _of_one_hot(labels: NDArray, name: str, notes: list[str]) -> NDArray[np.int64]:
    """Return the column of the 1 in each row."""
    if not (np.isin(labels, (0, 1)).all() and (labels.sum(axis=1) == 1).all()):
        raise UserError(
            f"{name} has shape {labels.shape}, and its rows are not one 1 among zeros; allowed: one label "
            f"per row of logits, or one-hot rows; take the most probable class of soft or multiple labels"
        )
    notes.append(f"{name}: one-hot rows are read as the column of their 1")
    return labels.argmax(axis=1)


def _of_names(
    labels: NDArray[np.str_], classes: int, name: str, names: tuple[str, ...], notes: list[str]
) -> NDArray[np.int64]:
    """Return the column of each label that is one of the names."""
    known = sorted(set(labels.tolist()))
    if not names:
        raise UserError(
            f"{name} has names ({', '.join(known[:5])}{', ...' * (len(known) > 5)}), and nothing says which "
            f"column each is; allowed: numbers of columns, or names in a known order; say on the command "
            f"line --classes NAME NAME ... in the order of the columns, or save them as an array 'classes'"
        )
    if len(names) != classes or len(set(names)) != classes:
        raise UserError(
            f"{name}: {len(names)} names of classes are given for {classes} columns; allowed: a different "
            f"name for each column, in their order; correct them"
        )
    if unknown := set(known) - set(names):
        raise unknown_name(name, min(unknown), names)
    notes.append(f"{name}: names are read as the columns {', '.join(names[:5])}{', ...' * (classes > 5)}")
    return np.array([names.index(label) for label in labels.tolist()], dtype=np.int64)


def _from_zero(
    scores: NDArray, labels: NDArray, name: str, first_label: int | None, notes: list[str]
) -> NDArray:
    """Return labels that count from 0; a UserError asks where the predictions contradict that they do."""
    classes = scores.shape[1]
    low, high = labels.min(), labels.max()
    if classes == 2 and (low, high) == (-1, 1) and not np.any(labels == 0):
        notes.append(f"{name}: -1 is read as class 0")
        return (labels > 0).astype(np.int64)
    if first_label is not None:
        return labels - first_label
    if low >= 1 and high == classes:
        notes.append(f"{name}: labels 1 to {classes} are read as classes 0 to {classes - 1}")
        return labels - 1
    if low >= 1 and high < classes:
        predicted = scores.argmax(axis=1)
        as_is, from_one = (float(np.mean(predicted == labels - first)) for first in (0, 1))
        if from_one > as_is:
            raise UserError(
                f"{name} has no label 0, and agrees with {100 * as_is:.0f} % of the predictions if it counts "
                f"from 0, but with {100 * from_one:.0f} % if it counts from 1; allowed: labels from 0; "
                f"subtract 1, or say on the command line --first-label 1 (or 0)"
            )
    return labels
