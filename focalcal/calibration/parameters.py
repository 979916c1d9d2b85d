"""What the parameters of fitted calibrators are: a class declares its own, and what is loaded is checked."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from focalcal.common.arrays import finite_array

LARGEST = 1e100
"""Sums of products with log-probabilities stay finite up to here."""


@dataclass(frozen=True)
class Numbers:
    """A parameter: its shape, of numbers, "k" classes, "k+1" or "m" for any number, and its bounds."""

    shape: tuple[int | str, ...] = ()
    low: float = -LARGEST
    high: float = LARGEST
    total: float | None = None
    """What the numbers sum to."""

    def check(self, name: str, value: Any, classes: int | None) -> int | None:
        """Return the number of classes as far as it is known; raise ValueError if a value is not allowed."""
        array = finite_array(name, value)
        fits = array.ndim == len(self.shape)
        for size, allowed in zip(array.shape, self.shape, strict=False):
            if allowed in {"k", "k+1"}:
                found = size - (allowed == "k+1")
                classes = found if classes is None else classes
                fits = fits and found == classes >= 2
            elif allowed != "m":
                fits = fits and size == allowed
        if not fits:
            of = f" for {classes} classes" if classes is not None else ""
            allowed_shape = f"({', '.join(map(str, self.shape))})"
            raise ValueError(f"{name} has shape {array.shape}{of}; allowed: {allowed_shape}, k >= 2 classes")
        if array.size and not (array.min() >= self.low and array.max() <= self.high):
            raise ValueError(
                f"{name} has values from {array.min():g} to {array.max():g}; allowed: {self.low:g} to "
                f"{self.high:g}"
            )
        if self.total is not None and not math.isclose(array.sum(), self.total, abs_tol=1e-6):
            raise ValueError(f"{name} sums to {array.sum():g}; allowed: {self.total:g}")
        return classes


GAMMA = Numbers(low=-1.0)
TEMPERATURE = Numbers(low=1.0 / LARGEST)
SHARE = Numbers(low=0.0, high=1.0)
FOCAL_MAP = {"gamma": GAMMA, "temperature": TEMPERATURE}


MOST_CLASSES = 10_000_000
"""More are a damaged file, which must not fill the memory."""


def checked_classes(declared: Mapping[str, Numbers] | None, parameters: Any, classes: Any) -> int | None:
    """Return the number of classes of a fit, None if any; raise ValueError unless its parameters are allowed.

    Without a declaration they may be any finite numbers.
    """
    if classes is not None and not (type(classes) is int and 2 <= classes <= MOST_CLASSES):
        raise ValueError(f"classes is {classes!r}; allowed: 2 to {MOST_CLASSES:,}, or null")
    if not isinstance(parameters, Mapping):
        raise ValueError(f"parameters is {type(parameters).__name__}; allowed: numbers by name")  # noqa: TRY004 - a damaged file
    if declared is None:
        for name, value in parameters.items():
            finite_array(f"parameters.{name}", value)
        return classes
    if parameters.keys() != declared.keys():
        raise ValueError(
            f"parameters has {', '.join(map(str, parameters)) or 'none'}; allowed: {', '.join(declared)}"
        )
    for name, numbers in declared.items():
        classes = numbers.check(f"parameters.{name}", parameters[name], classes)
    return classes


def check_starts(starts: Any, *of_parts: Any) -> None:
    """Raise ValueError unless `starts` cuts arrays into parts, in each of which the first ascends."""
    places, size = np.asarray(starts), len(of_parts[0])
    if places[0] != 0 or places[-1] != size or np.any(np.diff(places) < 1) or np.any(places % 1):
        raise ValueError(f"parameters.starts is {places.tolist()[:5]}; allowed: ascending from 0 to {size}")
    if any(len(array) != size for array in of_parts):
        raise ValueError(f"parameters differ in length; allowed: {size} numbers in each")
    falls = np.flatnonzero(np.diff(of_parts[0]) <= 0) + 1
    if not np.isin(falls, places).all():
        raise ValueError(
            "parameters.thresholds does not ascend within each class; allowed: ascending numbers"
        )
