"""Argument checks of the theory functions; every error names the argument, its value and the bound."""

import contextlib
import math
from typing import Any

import numpy as np

from focalcal.common.arrays import finite_array, probability_matrix

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


def checked_probabilities(name: str, values: Any) -> np.ndarray:
    """Return `values` as a float64 array (n, k) of non-negative rows that sum to 1 within `SUM_TOLERANCE`."""
    return np.ascontiguousarray(probability_matrix(name, values, SUM_TOLERANCE))


def checked_probability_values(name: str, values: Any) -> np.ndarray:
    """Return `values` as a float64 array of any shape with every entry in [0, 1]."""
    array = finite_array(name, values)
    outside = ~((array >= 0) & (array <= 1))
    if outside.any():
        raise ValueError(f"{name} must lie in [0, 1], got {float(array[outside].flat[0])!r}")
    return array
