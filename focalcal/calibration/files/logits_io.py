"""Validation and test logits of one run: checked, read, written."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from focalcal.common import npz
from focalcal.common.arrays import LARGEST_LOGIT
from focalcal.common.errors import UserError
from focalcal.common.io import atomic_output
from focalcal.common.samples import FEWEST_SAMPLES

SPLITS = ("val", "test")
_ONE_COLUMN = "of one value d per sample for two classes make the columns 0 and d"
ABSENT = -1e30
"""The logit of an option that a question does not have: its probability is 0 at any temperature."""


@dataclass(frozen=True)
class Split:
    """One split: logits, float32 or float64 (n, k), labels, int64 (n,), the posterior if known."""

    logits: NDArray[np.floating]
    labels: NDArray[np.int64]
    posterior: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class RunLogits:
    """Validation and test split of one run."""

    val: Split
    test: Split


def read_logits(path: str | os.PathLike[str]) -> RunLogits:
    """Return the logits of a `.npz` file as the suite writes it; a UserError says what is wrong."""
    return from_arrays(npz.read_npz(Path(path)), str(path))


def from_arrays(arrays: dict[str, NDArray], source: str) -> RunLogits:
    """Return checked logits from arrays {val,test}_{logits,labels} and, if known, {val,test}_posterior."""
    needed = [f"{split}_{kind}" for split in SPLITS for kind in ("logits", "labels")]
    missing = [name for name in needed if name not in arrays]
    if missing:
        raise UserError(
            f"{source} has no array {missing[0]!r}; it has {', '.join(sorted(arrays)) or 'none'}; "
            f"needed: {', '.join(needed)}"
        )
    classes = arrays["val_logits"].shape[-1] if arrays["val_logits"].ndim else 0
    splits = []
    for split in SPLITS:
        where = f"{source}: {split}"
        logits, posterior = arrays[f"{split}_logits"], arrays.get(f"{split}_posterior")
        _check_logit_array(logits, f"{where}_logits", classes)
        labels = _checked_labels(arrays[f"{split}_labels"], f"{where}_labels", *logits.shape)
        if posterior is not None and posterior.shape != logits.shape:
            raise UserError(
                f"{where}_posterior has shape {posterior.shape}; it must be that of the logits, "
                f"{logits.shape}"
            )
        splits.append(Split(logits, labels, posterior))
    return RunLogits(*splits)


def write_logits(path: str | os.PathLike[str], run: RunLogits) -> None:
    """Write `path` atomically, uncompressed, with the same bytes for the same arrays."""
    arrays = {
        f"{name}_{kind}": array
        for name, split in vars(run).items()
        for kind, array in vars(split).items()
        if array is not None
    }
    with atomic_output(path) as partial:
        np.savez(partial, **arrays)


def _check_logit_array(logits: NDArray, name: str, classes: int) -> None:
    if logits.dtype.kind != "f":
        raise UserError(
            f"{name} has dtype {logits.dtype}; it must be floating point: float16, float32 or float64; "
            f"convert it, or give the arrays their right names"
        )
    if logits.ndim != 2 or logits.shape[0] < FEWEST_SAMPLES["val"]:
        raise UserError(
            f"{name} has shape {logits.shape}; it must be (n, k): samples by classes, "
            f"n at least {FEWEST_SAMPLES['val']}{'; ' + _ONE_COLUMN if logits.ndim == 1 else ''}"
        )
    if logits.shape[1] < 2:
        raise UserError(f"{name} has shape {logits.shape}; at least 2 columns are needed; {_ONE_COLUMN}")
    if logits.shape[1] != classes:
        raise UserError(f"{name} has {logits.shape[1]} classes but val_logits has {classes}; they must agree")
    bad = ~(np.abs(logits.astype(np.float64, copy=False)) <= LARGEST_LOGIT)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise UserError(
            f"{name}[{row}, {column}] is {logits[row, column]}, one of {bad.sum()} such values; "
            f"all must be finite, at most {LARGEST_LOGIT:g} in size; drop those samples or repair the model"
        )


def _checked_labels(labels: NDArray, name: str, samples: int, classes: int) -> NDArray[np.int64]:
    if labels.shape != (samples,):
        one_hot = "; of one-hot rows take labels.argmax(axis=1)" if labels.shape == (samples, classes) else ""
        raise UserError(
            f"{name} has shape {labels.shape}; it must be ({samples},), one label per row of logits{one_hot}"
        )
    allowed = f"labels must be integers 0..{classes - 1}"
    if labels.dtype.kind not in "biuf":
        raise UserError(f"{name} has dtype {labels.dtype}; {allowed}; replace names by numbers of columns")
    broken = labels[labels != np.floor(labels)] if labels.dtype.kind == "f" else labels[:0]
    if broken.size:
        raise UserError(
            f"{name} has the label {broken[0]:g}; {allowed}; drop samples without a label, and give the "
            f"arrays their right names"
        )
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        from_one = "; subtract 1" if (low, high) == (1, classes) else ""
        raise UserError(f"{name} goes from {low} to {high}; {allowed}, the columns of the logits{from_one}")
    return labels.astype(np.int64)
