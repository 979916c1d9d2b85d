"""Method `fts-predicted`: focal temperature scaling whose temperatures one temperature fit predicts.

K24 finds that the temperature closest to Psi^gamma has 1/T near a gamma + b for a given number of classes
(Sec. 3.3), and leaves the comparison of cheap searches for future work (Sec. 6). If Psi^gamma acts like that
temperature, then the best T at gamma is the best T of temperature scaling divided by it.
"""

import functools
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.calibrators import GridFocalScaling
from focalcal.calibration.catalogue import calibrator
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import Fit, best_of_points, checked_temperatures, grid_search
from focalcal.theory.matching import MOST_CLASSES, match_temperature


@calibrator(id="fts-predicted", label="FTS, predicted T", color="sky", marker="<", shown=False)
class PredictedFocalTemperatureScaling(GridFocalScaling):
    """Method `fts-predicted`: temperature scaling on the grid, then one predicted point per gamma.

    It costs len(temperatures) + len(gammas) evaluations, where the whole grid costs their product. On
    validation data it is never worse than temperature scaling on the grid, which is among its candidates.
    """

    def _search(self, objective: Objective) -> Fit:
        temperatures = checked_temperatures(self.temperatures)
        scaled = grid_search(objective, self.criterion, (0.0,), temperatures)
        gammas = np.array(self.gammas, dtype=np.float64)
        points = scaled.parameters["temperature"] * matching_line(gammas, objective.logits.shape[1])
        points = np.clip(points, temperatures[0], temperatures[-1])
        predicted = best_of_points(objective, self.criterion, gammas, points, temperatures)
        chosen = min((scaled, predicted), key=lambda fit: fit.score)
        return replace(chosen, evaluations=scaled.evaluations + predicted.evaluations)


def matching_line(gammas: NDArray[np.float64], classes: int) -> NDArray[np.float64]:
    """Return 1/T of the temperature closest to Psi^gamma at each gamma > -1, float64 (g,), on a line.

    1/T is exactly 1 at gamma 0. On each side of it the line leads to the match at the gamma farthest from 0,
    so two matches serve all gammas. Matches are computed for at most ten classes, which stand in for more.
    """
    line = np.ones_like(gammas)
    for side in (gammas < 0, gammas > 0):
        if side.any():
            farthest = gammas[side][np.argmax(np.abs(gammas[side]))]
            temperature, _ = _match(farthest, min(classes, MOST_CLASSES))
            line[side] += (1 / temperature - 1) * gammas[side] / farthest
    return line


_match = functools.cache(match_temperature)
"""A match depends on no data, and takes longer than a temperature fit."""
