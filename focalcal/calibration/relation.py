"""How the best temperature depends on gamma (K24 Fig. 8)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.catalogue import CRITERIA
from focalcal.calibration.fit import bound_hit


def best_temperatures(surfaces: Mapping[str, NDArray]) -> list[dict[str, Any]]:
    """Return, for each criterion and gamma, the best temperature and its score: K24 Fig. 8's points.

    `surfaces` has gammas (g,), temperatures (t,) and one array (g, t) per criterion, as in surfaces.npz.
    Rows: criterion, gamma, temperature, score, bound_hit; ordered by criterion, then gamma.
    """
    gammas, temperatures = surfaces["gammas"], surfaces["temperatures"]
    rows = []
    for criterion in (name for name in CRITERIA if name in surfaces):
        columns = np.argmin(surfaces[criterion], axis=1)
        for index in np.argsort(gammas, kind="stable"):
            temperature = float(temperatures[columns[index]])
            rows.append(
                {
                    "criterion": criterion,
                    "gamma": float(gammas[index]),
                    "temperature": temperature,
                    "score": float(surfaces[criterion][index, columns[index]]),
                    "bound_hit": bound_hit(temperature, temperatures),
                }
            )
    return rows


def linear_relations(surfaces: Mapping[str, NDArray]) -> list[dict[str, Any]]:
    """Return, for each criterion, the least-squares line T = intercept + slope * gamma.

    It is fitted to `best_temperatures`, except those at a boundary of the grid, whose true optimum is
    elsewhere. Rows: criterion, intercept, slope, r_squared, largest_deviation (in T), prediction_error,
    points, left_out; the results are None with fewer than two points, r_squared also where all points have
    the same T. `prediction_error` is the largest relative error of a T that is predicted by the line through
    the other points, None with fewer than three: a gamma far from all others, such as K24's 5, bends the line
    to itself, so that R² hardly tells a straight relation from a bent one.
    """
    points = best_temperatures(surfaces)
    return [
        {"criterion": criterion, **_line([row for row in points if row["criterion"] == criterion])}
        for criterion in dict.fromkeys(row["criterion"] for row in points)
    ]


def _line(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the least-squares line through the rows whose temperature is not a bound."""
    inside = [row for row in rows if row["bound_hit"] == "none"]
    counts = {"points": len(inside), "left_out": len(rows) - len(inside)}
    if len(inside) < 2:
        names = ("intercept", "slope", "r_squared", "largest_deviation", "prediction_error")
        return dict.fromkeys(names) | counts
    gammas = np.array([row["gamma"] for row in inside])
    temperatures = np.array([row["temperature"] for row in inside])
    slope, intercept = np.polyfit(gammas, temperatures, 1)
    deviations = temperatures - (intercept + slope * gammas)
    spread = float(np.sum((temperatures - temperatures.mean()) ** 2))
    return {
        "intercept": float(intercept),
        "slope": float(slope),
        "r_squared": 1.0 - float(np.sum(deviations**2)) / spread if spread > 0 else None,
        "largest_deviation": float(np.max(np.abs(deviations))),
        "prediction_error": _prediction_error(gammas, temperatures),
        **counts,
    }


def _prediction_error(gammas: NDArray[np.float64], temperatures: NDArray[np.float64]) -> float | None:
    """Return the largest relative error of a temperature from the line through the others."""
    if len(gammas) < 3:
        return None
    errors = []
    for index, (gamma, temperature) in enumerate(zip(gammas, temperatures, strict=True)):
        line = np.polyfit(np.delete(gammas, index), np.delete(temperatures, index), 1)
        errors.append(abs(np.polyval(line, gamma) / temperature - 1))
    return float(max(errors))
