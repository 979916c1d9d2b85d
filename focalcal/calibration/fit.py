"""What fitting a calibrator found, and whether its search stopped at the boundary of its grid."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Fit:
    """The result of fitting a calibrator to validation data."""

    parameters: dict[str, Any]
    """All that predictions need, by name: numbers, arrays or nested lists of numbers."""
    score: float | None = None
    """The criterion on the data fitted to; None where nothing was minimised."""
    evaluations: int = 0
    """How many points the search evaluated: its cost."""
    boundaries: dict[str, str] = field(default_factory=dict)
    """Each parameter that stopped at the boundary of its grid, with "low" or "high": a better value may lie
    outside."""


def bound_hit(value: float, values: ArrayLike) -> str:
    """Return whether `value` is the smallest ("low") or largest ("high") of several values, else "none"."""
    low, high = np.min(values), np.max(values)
    if low == high:
        return "none"
    return "low" if value <= low else "high" if value >= high else "none"


def boundaries_hit(**searched: tuple[float, ArrayLike]) -> dict[str, str]:
    """Return "low" or "high" for each parameter whose value found is the boundary of the values searched.

    Each argument is a parameter's name with the value found and all values that were searched.
    """
    hits = {name: bound_hit(value, values) for name, (value, values) in searched.items()}
    return {name: hit for name, hit in hits.items() if hit != "none"}
