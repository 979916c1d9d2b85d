"""Named numbers that decide the papers' theoretical statements, for the claims ledger to compare.

A check has a name, one number and a note on where it occurs. "margin" checks are the smallest slack of an
inequality (never below 0 if the statement holds), "excess" checks the largest violation, the rest values.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

Row = dict[str, float | str]


@dataclass(frozen=True)
class TheoryCheck:
    """One number with a note on what it is or where it occurs."""

    value: float
    detail: str = ""


def check_rows(checks: Mapping[str, TheoryCheck]) -> list[Row]:
    """Return the checks as table rows name, value, detail."""
    return [
        {"name": name, "value": float(check.value), "detail": check.detail} for name, check in checks.items()
    ]


def smallest(values: np.ndarray, where: np.ndarray, label: str) -> TheoryCheck:
    """Return the smallest of `values` (n,) and the row of `where` (n, ...) at which it occurs."""
    index = int(np.argmin(values))
    return TheoryCheck(float(values[index]), f"{label} = {_four_digits(where[index])}")


def largest(values: np.ndarray, where: np.ndarray, label: str) -> TheoryCheck:
    """Return the largest of `values` (n,) and the row of `where` (n, ...) at which it occurs."""
    index = int(np.argmax(values))
    return TheoryCheck(float(values[index]), f"{label} = {_four_digits(where[index])}")


def binary_rows(p: np.ndarray) -> np.ndarray:
    """Return the probabilities (n,) of class 1 as rows (n, 2)."""
    return np.stack([p, 1.0 - p], axis=1)


def simplex_sample(classes: int, size: int, seed: int = 0) -> np.ndarray:
    """Return `size` points of the simplex, (size, classes): peaked to flat, and with few distinct levels."""
    generator = np.random.default_rng(seed)
    flatness = np.repeat([0.2, 1.0, 5.0, 50.0], -(-size // 8))
    spread = generator.standard_gamma(np.repeat(flatness[:, None], classes, axis=1)) + 1e-12
    levels = np.repeat(generator.uniform(0.0, 1.0, size=(size - len(spread), 1)) ** 3, classes, axis=1)
    first = generator.integers(1, classes, size=len(levels)) if classes > 1 else 1
    levels[np.arange(classes) < np.reshape(first, (-1, 1))] = 1.0
    rows = np.concatenate([spread, levels])
    return rows / rows.sum(axis=1, keepdims=True)


def _four_digits(numbers: np.ndarray | float) -> str:
    """Return numbers with four significant digits."""
    return ", ".join(f"{number:.4g}" for number in np.ravel(numbers))
