"""What the arrays of a file are, by the names and shapes that people give them.

Each way of reading that is not the file's own word is told in a note. What has two readings is a question, in
one line with the option that answers it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.files.forms import numbered, with_columns
from focalcal.common.errors import UserError
from focalcal.common.messages import unknown_name

Arrays = dict[str, NDArray]
ROLES = {
    "logits": (
        *("logits", "logit", "y_logits", "predictions", "prediction", "preds", "pred", "outputs", "output"),
        *(
            "scores",
            "score",
            "decision_function",
            "log_probs",
            "logprobs",
            "log_probabilities",
            "log_softmax",
        ),
    ),
    "probabilities": (
        *("probs", "prob", "probabilities", "probability", "probas", "proba", "y_prob", "y_probs", "y_proba"),
        *("y_score", "y_scores", "pred_probs", "pred_proba", "predict_proba", "softmax"),
    ),
    "labels": (
        *("labels", "label", "label_ids", "true_labels", "true_label", "y_true", "y", "targets", "target"),
        *("gt", "ground_truth"),
    ),
    "posterior": ("posterior",),
    "classes": ("classes", "class_names"),
    "tasks": ("tasks", "task", "subjects", "subject"),
}
"""What an array can be, and the names that say so, apart from that of its split."""
SPLIT_WORDS = {
    "val": ("val", "valid", "validation", "dev", "eval", "cal", "calib", "calibration"),
    "test": ("test",),
    "train": ("train", "training"),
}
SCORED = ("logits", "probabilities", "labels")
"""What the user names all of or nothing."""
NAMEABLE = (*SCORED, "tasks")
_WORDS = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Answers:
    """What the user says about a file beyond its content."""

    kind: str | None = None
    """logits or probabilities; None for what the names of the arrays say, or else logits."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The array that is the logits, probabilities, labels or tasks, by these words."""
    classes: tuple[str, ...] = ()
    """What labels are called that are names, in the order of the columns."""
    first_label: int | None = None
    """The number of the first class in labels: 0 or 1."""
    group: str = ""
    """The group of a file that has several."""


@dataclass(frozen=True)
class _Named:
    """An array of a file: whether it is of a split, and what it is."""

    split: str
    role: str
    name: str
    array: NDArray


def understood(
    arrays: Mapping[str, NDArray], source: str, answers: Answers, notes: list[str]
) -> tuple[Arrays, str]:
    """Return arrays {val_,test_,}{logits,labels,posterior} from arrays of any usual names, and their kind.

    Of samples of one split there may also be `tasks`, one text per sample. Labels are integers 0..k-1 where
    that has only one meaning, and scores have a column per class. What was read in another way than the file
    has it is added to `notes`.
    """
    named = list(_roles(arrays, source, answers))
    found = [entry for entry in named if entry.split != "train"]
    if len(found) < len(named):
        notes.append("training samples are left out: the model has seen them")
    if not any(entry.role in {"logits", "probabilities"} for entry in found):
        unnamed = {name: array for name, array in arrays.items() if _parsed(name)[0] != "train"}
        found = _by_shape(unnamed, source, notes)
    chosen: dict[str, _Named] = {}
    for (split, role), entries in groupby(
        sorted(found, key=lambda e: (e.split, e.role)), lambda e: (e.split, e.role)
    ):
        chosen[f"{split}/{role}"] = _the_one(list(entries), source)
    splits = _splits_of(chosen, notes)
    result: Arrays = {}
    kinds: set[str] = set()
    for split, prefix in splits.items():
        scores = _scores_of(chosen, split, notes)
        if scores is None:
            continue
        kind = answers.kind or scores.role
        kinds.add(kind)
        labels, posterior = (chosen.get(f"{split}/{role}") for role in ("labels", "posterior"))
        classes = chosen.get(f"{split}/classes") or chosen.get("/classes")
        names = answers.classes or (() if classes is None else tuple(map(str, classes.array.ravel())))
        told = None if labels is None else labels.array
        columns, told = with_columns(scores.array, told, kind, f"{source}: {scores.name}", notes)
        if told is not None:
            name = f"{source}: {prefix}labels"
            columns, told = numbered(columns, told, name, names, answers.first_label, notes)
        result[f"{prefix}logits"] = columns
        if told is not None:
            result[f"{prefix}labels"] = told
        if posterior is not None:
            result[f"{prefix}posterior"] = posterior.array
        _note_names(scores, labels, result, prefix, notes)
    result |= _tasks(chosen, result, source)
    if len(kinds) > 1:
        raise UserError(
            f"{source} has logits of one split and probabilities of another; allowed: one of the two; write "
            f"it again"
        )
    return result, next(iter(kinds), answers.kind or "logits")


def _parsed(name: str) -> tuple[str, str]:
    """Return the split that a name tells, "" if none, and what remains of the name."""
    words = [word for word in _WORDS.split(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()) if word]
    for split, known in SPLIT_WORDS.items():
        for word in known:
            if word in words and len(words) > 1:
                words.remove(word)
                return split, "_".join(words)
    return "", "_".join(words)


def _roles(arrays: Mapping[str, NDArray], source: str, answers: Answers) -> Iterator[_Named]:
    """Yield the arrays whose name says what they are, or those that the user names."""
    for role, name in answers.names.items():
        if role not in NAMEABLE:
            raise unknown_name("--names", role, NAMEABLE)
        if name not in arrays:
            raise unknown_name(f"--names {role}", name, arrays, f"these are the arrays of {source}")
        yield _Named("", role, name, arrays[name])
    for name, array in arrays.items():
        split, rest = _parsed(name)
        for role, words in ROLES.items():
            if rest in words and role not in answers.names and not (answers.names and role in SCORED):
                yield _Named(split, role, name, array)


def _by_shape(arrays: Mapping[str, NDArray], source: str, notes: list[str]) -> list[_Named]:
    """Return scores and labels that no name tells, if only one array can be each."""
    scores = [name for name, array in arrays.items() if array.ndim == 2 and array.dtype.kind == "f"]
    labels = [name for name, array in arrays.items() if array.ndim == 1 and array.dtype.kind in "iubU"]
    if len(scores) == len(labels) == 1 and len(arrays[scores[0]]) == len(arrays[labels[0]]):
        notes.append(f"by their shapes, {scores[0]!r} holds the logits and {labels[0]!r} the labels")
        return [
            _Named("", "logits", scores[0], arrays[scores[0]]),
            _Named("", "labels", labels[0], arrays[labels[0]]),
        ]
    described = ", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "none"
    raise UserError(
        f"{source} has the arrays {described}; allowed: logits and labels, or val_logits, val_labels, "
        f"test_logits, test_labels; rename them, or on the command line say which they are: --names "
        f"logits=NAME labels=NAME"
    )


def _the_one(entries: list[_Named], source: str) -> _Named:
    """Return the array of a role; a UserError asks which if several differ."""
    first, *others = entries
    for other in others:
        if not np.array_equal(first.array, other.array):
            raise UserError(
                f"{source} has {first.name!r} and {other.name!r}, which could both be the {first.role}; "
                f"allowed: one of them; remove the other, or on the command line --names "
                f"{first.role}={first.name}"
            )
    return first


def _tasks(chosen: Mapping[str, _Named], result: Arrays, source: str) -> Arrays:
    """Return the task of each sample of a file with one split, if it names them."""
    if "logits" not in result or "/tasks" not in chosen:
        return {}
    found, samples = chosen["/tasks"], len(result["logits"])
    if found.array.shape != (samples,):
        raise UserError(
            f"{source}: {found.name} has shape {found.array.shape}; allowed: ({samples},), one task per "
            f"sample that is not left out; correct it"
        )
    return {"tasks": found.array.astype(str)}


def _splits_of(chosen: Mapping[str, _Named], notes: list[str]) -> dict[str, str]:
    """Return the prefix of the names of each split's arrays."""
    found = sorted({entry.split for entry in chosen.values() if entry.role in {"logits", "probabilities"}})
    if found == ["test"]:
        notes.append("the test samples are the only ones, and so choose and measure")
        return {"test": ""}
    if len(found) == 2 and "" in found and "test" in found:
        return {"": "val_", "test": "test_"}
    return {split: f"{split}_" if split else "" for split in found}


def _scores_of(chosen: Mapping[str, _Named], split: str, notes: list[str]) -> _Named | None:
    logits, probabilities = (chosen.get(f"{split}/{role}") for role in ("logits", "probabilities"))
    if logits is not None and probabilities is not None:
        notes.append(f"{probabilities.name!r} is left out, since {logits.name!r} has the logits")
    return probabilities if logits is None else logits


def _note_names(scores: _Named, labels: _Named | None, result: Arrays, prefix: str, notes: list[str]) -> None:
    """Say which arrays were taken if these have not the names that the suite gives them."""
    if labels is not None and (scores.name, labels.name) != (f"{prefix}logits", f"{prefix}labels"):
        shape = " x ".join(map(str, result[f"{prefix}logits"].shape))
        notes.append(f"{scores.name!r} holds the {scores.role} ({shape}), {labels.name!r} the labels")
