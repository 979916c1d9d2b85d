"""The gate for arrays: every public function takes its arrays through one of these checks.

A ValueError names the argument, what it got, what is allowed and, where there is one, the repair.
"""

import math
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST_LOGIT = 1e300
"""Above this a difference of two logits divided by a small temperature could overflow float64."""
_OTHERS = {
    "O": "objects; give numbers",
    "b": "booleans; give numbers",
    "c": "complex numbers; take their real parts",
    "U": "text; convert it to numbers",
    "S": "text; convert it to numbers",
    "M": "dates; give numbers",
}


def unmasked(name: str, values: Any) -> NDArray:
    """Return `values` as an array; refuse masked entries, whose numbers mean nothing, and ragged lists."""
    parts = [values, *values] if isinstance(values, list | tuple) else [values]
    # Whoever has made a masked array has loaded numpy.ma, which takes a while.
    if "numpy.ma" in sys.modules and any(np.ma.is_masked(part) for part in parts):
        raise ValueError(f"{name} has masked entries; allowed: numbers; leave those samples out")
    try:
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{name} is no array ({reason}); allowed: rows of equal length") from None


def real_array(name: str, values: Any) -> NDArray:
    """Return `values` as an array of real numbers."""
    array = unmasked(name, values)
    if array.dtype.kind not in "fiu":
        held = _OTHERS.get(array.dtype.kind, "others")
        raise ValueError(f"{name} has dtype {array.dtype}; allowed: real numbers, not {held}")
    return array


def finite_array(name: str, values: Any, largest: float = math.inf) -> NDArray[np.float64]:
    """Return `values` as a finite float64 array, at most `largest` in size."""
    array = real_array(name, values)
    with np.errstate(over="ignore"):
        array = np.asarray(array, dtype=np.float64)
    # NaN and infinities propagate to the extremes, so two reductions check every entry.
    largest = min(largest, float(np.finfo(np.float64).max))
    if array.size and not (array.max() <= largest and array.min() >= -largest):
        place = np.argwhere(~(np.abs(array) <= largest))[0]
        where = f"[{', '.join(map(str, place))}]" if array.ndim else ""
        raise ValueError(
            f"{name}{where} is {array[tuple(place)]}; allowed: finite numbers, at most {largest:.3g} in size"
        )
    return array


def matrix(
    name: str, values: Any, *, fewest: int = 0, classes: int | None = None, largest: float = math.inf
) -> NDArray[np.float64]:
    """Return `values` as a finite float64 array (n, k), n at least `fewest`, k at least 2 or `classes`."""
    array = real_array(name, values)
    if array.ndim != 2 or array.shape[0] < fewest or array.shape[1] < 2:
        raise ValueError(
            f"{name} has shape {array.shape}; allowed: (n, k), {f'n >= {fewest} samples, ' * (fewest > 0)}"
            f"k >= 2 classes"
        )
    if classes is not None and array.shape[1] != classes:
        raise ValueError(f"{name} has {array.shape[1]} classes; allowed: {classes}, as in what was fitted")
    return finite_array(name, array, largest)


def logit_matrix(values: Any, *, fewest: int = 1, classes: int | None = None) -> NDArray[np.float64]:
    """Return logits as C-contiguous float64 (n, k), at most `LARGEST_LOGIT` in size."""
    return np.ascontiguousarray(
        matrix("logits", values, fewest=fewest, classes=classes, largest=LARGEST_LOGIT)
    )


def probability_matrix(name: str, values: Any, tolerance: float, *, fewest: int = 0) -> NDArray[np.float64]:
    """Return `values` as float64 (n, k), not negative, rows summing to 1 within `tolerance`."""
    array = matrix(name, values, fewest=fewest)
    if not array.size:
        return array
    if array.min() < 0:
        row, column = np.argwhere(array < 0)[0]
        raise ValueError(
            f"{name}[{row}, {column}] is {array[row, column]}; allowed: 0 to 1; give probabilities, not "
            f"logits"
        )
    sums = array.sum(axis=1)
    row = int(np.abs(sums - 1.0).argmax())
    if abs(sums[row] - 1.0) > tolerance:
        raise ValueError(
            f"{name} has row {row} whose sum is {sums[row]:.6g}; allowed: 1 within {tolerance:g}; normalise "
            f"the rows"
        )
    return array


def label_vector(labels: Any, samples: int, classes: int) -> NDArray[np.int64]:
    """Return labels as int64 (samples,), from 0 to classes - 1."""
    array = unmasked("labels", labels)
    if array.shape != (samples,):
        one_hot = "; of one-hot rows take labels.argmax(axis=1)" if array.shape == (samples, classes) else ""
        raise ValueError(
            f"labels has shape {array.shape}; allowed: ({samples},), one label per sample{one_hot}"
        )
    allowed = f"allowed: integers 0..{classes - 1}, the columns"
    if array.dtype.kind not in "iu":
        raise ValueError(f"labels has dtype {array.dtype}; {allowed}")
    if array.size and not (array.min() >= 0 and array.max() < classes):
        low, high = int(array.min()), int(array.max())
        from_one = "; subtract 1" if (low, high) == (1, classes) else ""
        raise ValueError(f"labels has values from {low} to {high}; {allowed}{from_one}")
    return array.astype(np.int64)
