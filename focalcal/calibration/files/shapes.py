"""Arrays of labelled logits, in the shapes that people have them in, as checked splits."""

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.files.logits_io import SPLITS, RunLogits, Split, from_arrays
from focalcal.common.errors import UserError

KINDS = ("logits", "probabilities")
ROW_SUM_TOLERANCE = 1e-3
LIKELY_ROW_SUM_TOLERANCE = 0.15
"""Rounded probabilities, or those without one class, sum to 1 this closely; logits in [0, 1] do not."""
SMALLEST_PROBABILITY = float(np.finfo(np.float32).tiny)
"""The smallest normal float32, about 1.2e-38: no probability is read as less."""


def checked_splits(
    arrays: dict[str, NDArray], kind: str, source: str, warnings: list[str]
) -> RunLogits | Split:
    """Return what the arrays {val,test}_{logits,labels} hold; a Split if there are none of test samples.

    A UserError says what is wrong with an array of `source`.
    """
    arrays = dict(arrays)
    zero = None
    for split in SPLITS:
        name = f"{split}_logits"
        if name in arrays:
            given = arrays[name]
            arrays[name] = as_logits(given, kind, f"{source}: {name}", warnings, zero)
            # The calibrator meets a 0 among test samples as it met those that it is fitted to.
            zero = zero_of(given) if kind == "probabilities" and zero is None else zero
    if any(name.startswith("test_") for name in arrays):
        return from_arrays(arrays, source)
    missing = [name for name in ("val_logits", "val_labels") if name not in arrays]
    if missing:
        raise UserError(
            f"{source} has no array {missing[0]!r}; it has {', '.join(sorted(arrays)) or 'none'}; "
            f"needed: val_logits, val_labels, and if there are test samples test_logits, test_labels"
        )
    alone = {name.replace("val_", "test_"): array for name, array in arrays.items()}
    return from_arrays(arrays | alone, source).val


def zero_of(probabilities: NDArray) -> float:
    """Return what a probability of exactly 0 is read as: half the smallest of the others.

    A forest of 100 trees says 0 where it means less than 1/100, float32 where it means less than 1e-45. A
    logit of -87 for each would make the calibrator answer for the few zeros that turn out wrong.
    """
    positive = probabilities[probabilities > 0]
    return max(float(positive.min(initial=1.0)) / 2, SMALLEST_PROBABILITY)


def logs_of(probabilities: NDArray, zero: float) -> NDArray[np.float64]:
    """Return the logarithms of probabilities, of which those below `zero` count as that."""
    return np.log(np.maximum(probabilities.astype(np.float64), zero))


def as_logits(
    values: NDArray, kind: str, name: str, warnings: list[str], zero: float | None = None
) -> NDArray:
    """Return the values as float32 or float64 logits; what `logits_io` refuses is returned unchanged.

    `kind` is logits or probabilities, of which 0 is read as `zero`, by default `zero_of` them. What the user
    should know is added to `warnings`.
    """
    if values.dtype.kind != "f" or values.ndim != 2 or not np.isfinite(values).all():
        return values
    values = values.astype(np.float32 if values.dtype.itemsize <= 4 else np.float64, copy=False)
    sums = values.sum(axis=1, dtype=np.float64)
    in_range = bool(np.all(values >= 0) and np.all(values <= 1 + ROW_SUM_TOLERANCE))
    sums_error = float(np.abs(sums - 1.0).max(initial=0.0))
    if kind == "logits":
        if in_range and sums_error <= LIKELY_ROW_SUM_TOLERANCE and len(values):
            raise UserError(
                f"{name} has rows of numbers from 0 to 1 that sum to {sums.min():.3g} to {sums.max():.3g}: "
                f"they look like probabilities; allowed: logits, or probabilities declared as "
                f"`kind: probabilities` (on the command line --kind probabilities, in Python "
                f"kind='probabilities'); declare them"
            )
        return values
    if not (in_range and sums_error <= ROW_SUM_TOLERANCE):
        raise UserError(
            f"{name} is declared as probabilities but has values from {values.min():g} to {values.max():g} "
            f"and row sums from {sums.min():g} to {sums.max():g}; allowed: 0 to 1, rows that sum to 1; "
            f"leave `kind` out for logits, or normalise the rows"
        )
    zero = zero_of(values) if zero is None else zero
    zeros, ones = int(np.count_nonzero(values == 0)), int(np.count_nonzero(values >= 1))
    if zeros or ones:
        warnings.append(
            f"{name}: {zeros} probabilities are exactly 0 and {ones} exactly 1, so that their logits are "
            f"unknown (0 is read as half the smallest other probability, {zero:.1e}); save logits instead if "
            f"the model has them"
        )
    return logs_of(values, zero)
