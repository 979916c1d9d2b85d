"""Temperature scaling on the grid of Mukhoti et al. (2020), whatever grid is configured."""

from dataclasses import dataclass

from focalcal.calibration.calibrators import FocalMap
from focalcal.calibration.catalogue import calibrator
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import Fit, grid_search, temperature_grid

M20_TEMPERATURES = temperature_grid(0.1, 10.0, 0.1)
"""The grid of M20 section 6."""


@calibrator(
    id="ts-m20",
    label="TS, M20's grid",
    full_label="temperature scaling on M20's grid",
    criteria=("ece", "adaece"),
    shown=False,
)
@dataclass(eq=False)
class M20TemperatureScaling(FocalMap):
    """Method `ts-m20`: temperature scaling with T from 0.1 to 10 in steps of 0.1 (M20 section 6).

    Parameters
    ----------
    criterion : {"ece", "adaece"}
        What is minimised on validation data.
    """

    criterion: str = "ece"

    def _search(self, objective: Objective) -> Fit:
        return grid_search(objective, self.criterion, (0.0,), M20_TEMPERATURES)
