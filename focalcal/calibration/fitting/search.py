"""Searches of grids for the gamma and temperature that minimise a criterion on validation data."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from focalcal.calibration.catalogue import CRITERIA
from focalcal.calibration.fitting.objective import Objective

K24_GAMMAS = (-0.5, -0.25, 0.05, 0.25, 0.37, 0.5, 0.75, 1.0, 5.0)
K24_TEMPERATURES = tuple(i / 100 for i in range(1, 501))
"""The grids of K24 Sec. 5.1; the temperatures are the nearest floats of 0.01, 0.02, ..., 5.00."""
LINE_GAMMAS = (0.0, 1.0)


class NoMinimumError(FloatingPointError):
    """A calibrator has no fit: its criterion has no minimum, as that of a matrix for few samples may not."""


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
    """Each parameter that stopped at the boundary of what is searched, with "low" or "high": a better value
    may lie outside."""


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


def temperature_grid(start: float, stop: float, step: float) -> NDArray[np.float64]:
    """Return start, start + step, ... up to stop, each the nearest float of its decimal value."""
    if not step > 0:
        raise ValueError(f"the step of temperatures is {step}; expected a number above 0")
    first, last, width = (Decimal(str(value)) for value in (start, stop, step))
    return np.array([float(first + i * width) for i in range(int((last - first) / width) + 1)])


def checked_temperatures(temperatures: ArrayLike | None) -> NDArray[np.float64]:
    """Return temperatures as float64 (t,), those of K24 for None; they must be positive and ascending."""
    grid = np.asarray(K24_TEMPERATURES if temperatures is None else temperatures, dtype=np.float64)
    if grid.ndim != 1 or grid.size == 0:
        raise ValueError(
            f"temperatures has shape {grid.shape}; expected one dimension with at least one value"
        )
    if not (np.all(np.isfinite(grid)) and np.all(grid > 0)):
        raise ValueError("temperatures has values that are not finite and above 0")
    if np.any(np.diff(grid) <= 0):
        raise ValueError("temperatures must be strictly ascending")
    return grid


def grid_search(
    objective: Objective, criterion: str, gammas: Sequence[float], temperatures: NDArray[np.float64]
) -> Fit:
    """Return the best point of the grid, of equally good ones the first: by gamma, then by temperature."""
    _check_criterion(criterion)
    surface = objective.surfaces(gammas, temperatures)[criterion]
    row, column = divmod(_argmin(surface, criterion), surface.shape[1])
    return Fit(
        {"gamma": float(gammas[row]), "temperature": float(temperatures[column])},
        score=float(surface[row, column]),
        evaluations=surface.size,
        boundaries=boundaries_hit(
            gamma=(gammas[row], gammas), temperature=(temperatures[column], temperatures)
        ),
    )


def line_search(
    objective: Objective, criterion: str, gammas: Sequence[float], temperatures: NDArray[np.float64]
) -> Fit:
    """Return the best point of the line through the best temperatures at two gammas.

    K24 Sec. 5.2: m = len(temperatures) points at each of the two gammas, then m points along the line,
    equally spaced from the smallest to the largest of `gammas` and kept inside the range of temperatures:
    3m evaluations. The two gammas, which K24 leaves open, are 0 and 1 where those are within the range: the
    relation is straight around them and bends towards large gammas, and at 0 the line meets temperature
    scaling.
    """
    first, second = _line_gammas(gammas)
    low, high = (grid_search(objective, criterion, (gamma,), temperatures) for gamma in (first, second))
    start, end = (fit.parameters["temperature"] for fit in (low, high))
    slope = (end - start) / (second - first)
    walk = np.linspace(min(gammas), max(gammas), len(temperatures))
    points = np.clip(start + slope * (walk - first), temperatures[0], temperatures[-1])
    on_line = best_of_points(objective, criterion, walk, points, temperatures)
    chosen = min((low, high, on_line), key=lambda fit: fit.score)
    return replace(chosen, evaluations=3 * len(temperatures))


def best_of_points(
    objective: Objective,
    criterion: str,
    gammas: NDArray[np.float64],
    points: NDArray[np.float64],
    temperatures: NDArray[np.float64],
) -> Fit:
    """Return the best of the pairs (gammas[i], points[i]); `temperatures` is the range the points lie in."""
    scores = objective.points(gammas, points)[criterion]
    best = _argmin(scores, criterion)
    return Fit(
        {"gamma": float(gammas[best]), "temperature": float(points[best])},
        score=float(scores[best]),
        evaluations=len(gammas),
        boundaries=boundaries_hit(gamma=(gammas[best], gammas), temperature=(points[best], temperatures)),
    )


def _line_gammas(gammas: Sequence[float]) -> tuple[float, float]:
    """Return the two gammas that define the line: 0 and 1, moved into the range of gammas where necessary."""
    low, high = min(gammas), max(gammas)
    if low == high:
        raise ValueError(f"gammas has one value, {low}; a line needs two different ones")
    inside = max(low, LINE_GAMMAS[0]), min(high, LINE_GAMMAS[1])
    return inside if inside[0] < inside[1] else (low, high)


def focal_loss_search(objective: Objective, training_gamma: float, temperatures: NDArray[np.float64]) -> Fit:
    """Return the temperature whose scaled softmax has the smallest focal loss (C21 Sec. 6.1, TS_FL)."""
    losses = objective.focal_losses(training_gamma, temperatures)
    best = _argmin(losses, "focal")
    return Fit(
        {"gamma": 0.0, "temperature": float(temperatures[best])},
        score=float(losses[best]),
        evaluations=len(temperatures),
        boundaries=boundaries_hit(temperature=(temperatures[best], temperatures)),
    )


def _argmin(scores: NDArray[np.float64], criterion: str) -> int:
    """Return the flat index of the first smallest score; raise if a score is not finite."""
    bad = scores.size - int(np.count_nonzero(np.isfinite(scores)))
    if bad:
        raise FloatingPointError(f"the criterion {criterion} is not finite at {bad} of {scores.size} points")
    return int(np.argmin(scores))


def _check_criterion(criterion: str) -> None:
    if criterion not in CRITERIA:
        raise ValueError(f"criterion is {criterion!r}; expected one of {', '.join(CRITERIA)}")
