"""Argument checks of the theory functions; every error names the argument, its value and the bound."""

import contextlib
import math
from typing import Any

import numpy as np

SUM_TOLERANCE = 1e-5
"""Tolerance for the sum of a row of probabilities, wide enough for a float32 softmax over many classes."""


def checked_scalar(name: str, value: Any) -> float:
    """Return `value` as a finite float."""
    with contextlib.suppress(TypeError, ValueError):
        if math.isfinite(number := float(value)):
            return number
    raise ValueError(f"{name} must be one finite number, got {value!r}")


def checked_gamma(gamma: Any, minimum: float = -1.0) -> float:
    """Return `gamma` as a finite float of at least `minimum`."""
    number = checked_scalar("gamma", gamma)
    if number < minimum:
        raise ValueError(f"gamma must be at least {minimum:g}, got {number!r}")
    return number


def checked_above(name: str, value: Any, bound: float = 0.0) -> float:
    """Return `value` as a finite float above `bound`."""
    number = checked_scalar(name, value)
    if number <= bound:
        raise ValueError(f"{name} must be above {bound:g}, got {number!r}")
    return number


def checked_classes(classes: Any, maximum: float = math.inf) -> int:
    """Return `classes` as an int from 2 to `maximum`."""
    number = checked_scalar("classes", classes)
    if number != int(number):
        raise ValueError(f"classes must be a whole number, got {classes!r}")
    if number < 2:
        raise ValueError(f"classes must be at least 2, got {classes!r}")
    if number > maximum:
        raise ValueError(f"classes must be at most {maximum}, got {classes!r}")
    return int(number)


def checked_matrix(name: str, values: Any) -> np.ndarray:
    """Return `values` as a finite float64 array (n, k) with k >= 2, C-contiguous."""
    array = np.asarray(values)
    if array.dtype.kind not in "bfiu":
        raise ValueError(f"{name} must be an array (n, k) of real numbers, got dtype {array.dtype}")
    if array.ndim != 2:
        raise ValueError(f"{name} must have 2 dimensions (n, k), got shape {array.shape}")
    if array.shape[1] < 2:
        raise ValueError(f"{name} must have at least 2 classes (columns), got shape {array.shape}")
    array = np.ascontiguousarray(array, dtype=np.float64)
    # NaN and infinities propagate to the extremes, so two reductions check every entry
    if array.size and not (np.isfinite(array.max()) and np.isfinite(array.min())):
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise ValueError(f"{name} must be finite, got {array[row, column]} in row {row}, column {column}")
    return array


def checked_probabilities(name: str, values: Any) -> np.ndarray:
    """Return `values` as a float64 array (n, k) of non-negative rows that sum to 1 within `SUM_TOLERANCE`."""
    array = checked_matrix(name, values)
    if not array.size:
        return array
    if array.min() < 0:
        row, column = np.argwhere(array < 0)[0]
        raise ValueError(f"{name} must be at least 0, got {array[row, column]} in row {row}, column {column}")
    totals = array.sum(axis=1)
    row = int(np.abs(totals - 1).argmax())
    if abs(totals[row] - 1) > SUM_TOLERANCE:
        raise ValueError(
            f"{name} rows must sum to 1 within {SUM_TOLERANCE:g}, got {totals[row]} in row {row}"
        )
    return array


def checked_probability_values(name: str, values: Any) -> np.ndarray:
    """Return `values` as a float64 array of any shape with every entry in [0, 1]."""
    array = np.asarray(values, dtype=np.float64)
    outside = ~((array >= 0) & (array <= 1))
    if outside.any():
        raise ValueError(f"{name} must lie in [0, 1], got {float(array[outside].flat[0])!r}")
    return array
