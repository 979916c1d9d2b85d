"""How the best temperature depends on gamma (K24 Fig. 8)."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.fit import bound_hit


def prediction_error(surfaces: Mapping[str, NDArray], criterion: str) -> float | None:
    """Return the largest relative error of a best T from the line through those of the other gammas.

    `surfaces` has gammas (g,), temperatures (t,) and one array (g, t) per criterion, as in surfaces.npz.
    Temperatures at the boundary of the grid, whose true optimum is elsewhere, are left out; the result is
    None with fewer than three others. Each T is predicted without itself, because a gamma far from all
    others, such as K24's 5, bends the line to itself, so that R² says little about straightness.
    """
    order = np.argsort(surfaces["gammas"], kind="stable")
    grid = surfaces["temperatures"]
    best = grid[np.argmin(surfaces[criterion], axis=1)][order]
    inside = np.array([bound_hit(temperature, grid) == "none" for temperature in best])
    gammas, temperatures = surfaces["gammas"][order][inside], best[inside]
    if len(gammas) < 3:
        return None
    errors = []
    for index, (gamma, temperature) in enumerate(zip(gammas, temperatures, strict=True)):
        line = np.polyfit(np.delete(gammas, index), np.delete(temperatures, index), 1)
        errors.append(abs(np.polyval(line, gamma) / temperature - 1))
    return float(max(errors))
