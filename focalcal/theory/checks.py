"""What the checks of the papers' theoretical statements share: extremes with their location, and samples.

A "margin" is the smallest slack of an inequality (never below 0 if the statement holds), an "excess" the
largest violation; the other checks are plain values.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from focalcal.common.checks import Check

Values = Sequence[Any] | np.ndarray


def smallest(name: str, values: Values, where: Values, label: str) -> Check:
    """Return the smallest of `values` (n,) and the row of `where` (n, ...) at which it occurs."""
    return _located(name, values, int(np.argmin(values)), where, label)


def largest(name: str, values: Values, where: Values, label: str) -> Check:
    """Return the largest of `values` (n,) and the row of `where` (n, ...) at which it occurs."""
    return _located(name, values, int(np.argmax(values)), where, label)


def binary_rows(p: np.ndarray) -> np.ndarray:
    """Return the probabilities (n,) of class 1 as rows (n, 2)."""
    return np.stack([p, 1.0 - p], axis=1)


def simplex_sample(classes: int, size: int, seed: int = 0) -> np.ndarray:
    """Return `size` points of the simplex, (size, classes): peaked to flat, and with few distinct levels."""
    generator = np.random.default_rng(seed)
    flatness = np.repeat([0.2, 1.0, 5.0, 50.0], -(-size // 8))
    spread = generator.standard_gamma(np.repeat(flatness[:, None], classes, axis=1)) + 1e-12
    levels = np.repeat(generator.uniform(0.0, 1.0, size=(size - len(spread), 1)) ** 3, classes, axis=1)
    first = generator.integers(1, classes, size=len(levels))
    levels[np.arange(classes) < np.reshape(first, (-1, 1))] = 1.0
    rows = np.concatenate([spread, levels])
    return rows / rows.sum(axis=1, keepdims=True)


def _located(name: str, values: Values, index: int, where: Values, label: str) -> Check:
    """Return one of `values` with its row of `where`, in four significant digits."""
    location = ", ".join(f"{number:.4g}" for number in np.ravel(where[index]))
    return Check(name, float(values[index]), f"{label} = {location}")
