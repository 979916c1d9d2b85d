"""What a search found, and whether it stopped at a boundary of its range."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Fit:
    """What a search found."""

    gamma: float
    temperature: float
    score: float | None
    """The criterion at (gamma, temperature) on the data searched on; None where nothing was searched."""
    evaluations: int
    """How many (gamma, temperature) points were evaluated: the search's cost."""
    temperature_bound: str = "none"
    """Whether the temperature is the "low" or "high" boundary of its range: the optimum may lie outside."""
    gamma_bound: str = "none"
    """The same for gamma."""


def bound_hit(value: float, values: ArrayLike) -> str:
    """Return whether `value` is the smallest ("low") or largest ("high") of several values, else "none"."""
    low, high = np.min(values), np.max(values)
    if low == high:
        return "none"
    return "low" if value <= low else "high" if value >= high else "none"
