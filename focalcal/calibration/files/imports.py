"""Logits of models trained elsewhere, in the usual formats (`readers`), names (`names`) and forms (`forms`).

A file has validation and test samples, `val_logits`, `val_labels`, `test_logits`, `test_labels` and, if it is
known, `val_posterior` and `test_posterior`; or one split only, `logits`, `labels` and `posterior`. With
`split: halves` one half of the samples of one split validates and the other tests.

With `kind: probabilities` the numbers are probabilities instead of logits, and their logarithms are taken.
Nothing in a file is executed.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.files.logits_io import SPLITS, RunLogits, Split
from focalcal.calibration.files.names import Answers, understood
from focalcal.calibration.files.readers import read_files
from focalcal.calibration.files.shapes import as_logits, checked_splits
from focalcal.common.checksums import checksum
from focalcal.common.errors import UserError

ONE_SPLIT = ("logits", "labels", "posterior")
"""Arrays of a file with one split only."""
NOTHING_SAID = Answers()


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
    notes: tuple[str, ...] = ()
    """How the file was understood where it could be read in several ways."""
    tasks: NDArray[np.str_] | None = None
    """The task of each sample of a file with one split, if it has several."""


def import_logits(path: Path, kind: str, *, halves: bool = False, swapped: bool = False) -> Imported:
    """Return the checked logits of `path`; a UserError names what is wrong and the repair.

    With `halves` the file has one split only; see `divided`.
    """
    found = read_splits(
        [path], Answers(None if kind == "logits" else kind), share=0.5 if halves else None, swapped=swapped
    )
    if isinstance(found.splits, Split):
        raise UserError(
            f"{path} has one split only; allowed: validation and test samples; add those (in a table with a "
            f"column 'split'), or divide the file with `split: halves`"
        )
    return Imported(found.splits, found.checksum, found.warnings)


def read_splits(
    paths: Sequence[Path],
    answers: Answers = NOTHING_SAID,
    *,
    share: float | None = None,
    swapped: bool = False,
) -> Labelled:
    """Return the checked logits of files, which may have one split only; a UserError says what is wrong.

    With a `share` they must have one split only, which is divided; see `divided`.
    """
    source = _shown(paths)
    notes: list[str] = []
    warnings: list[str] = []
    found = read_files(paths, answers.group, notes)
    arrays, kind = understood(found, source, answers, notes)
    tasks = arrays.pop("tasks", None)
    if share is not None:
        arrays = divided(arrays, source, share, swapped=swapped)
    elif "logits" in arrays and "val_logits" not in arrays:
        arrays = {f"val_{name}": arrays[name] for name in ONE_SPLIT if name in arrays}
    splits = checked_splits(arrays, kind, source, warnings)
    return Labelled(splits, _checksum(paths), tuple(warnings), tuple(notes), tasks)


def read_scores(
    paths: Sequence[Path], answers: Answers, notes: list[str], warnings: list[str]
) -> NDArray[np.floating]:
    """Return the logits (n, k) of files that need no labels; of several splits those of the test samples."""
    source = _shown(paths)
    arrays, kind = understood(read_files(paths, answers.group, notes), source, answers, notes)
    found = [name for name in ("logits", "test_logits", "val_logits") if name in arrays]
    if len(found) > 1:
        notes.append(f"of several splits, {found[0]!r} is taken")
    return as_logits(arrays[found[0]], kind, f"{source}: {found[0]}", warnings)


def _shown(paths: Sequence[Path]) -> str:
    return " and ".join(map(str, paths))


def _checksum(paths: Sequence[Path]) -> str:
    """Return the checksum of a file, or that of the checksums of several."""
    files = [file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    sums = [checksum(file) for file in files if file.is_file()]
    return sums[0] if len(sums) == 1 else hashlib.sha256(" ".join(sums).encode()).hexdigest()


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
