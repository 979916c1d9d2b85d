"""Focal temperature scaling as in the log-loss column of Komisarenko & Kull (2024), Table 1."""

from dataclasses import replace

from focalcal.calibration.calibrators import GridFocalScaling
from focalcal.calibration.catalogue import calibrator
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import Fit, checked_temperatures, grid_search


@calibrator(
    id="fts-k24",
    label="FTS, K24's log-loss column",
    full_label="focal temperature scaling, gamma chosen by ECE and T by log-loss",
    criteria=("nll",),
    shown=False,
)
class K24FocalTemperatureScaling(GridFocalScaling):
    """Method `fts-k24`: gamma chosen by equal-mass ECE, then T by log-loss at that gamma.

    K24 Table 1 prints one gamma per row for the columns of ECE and log-loss alike, with a temperature for
    each.
    """

    def _search(self, objective: Objective) -> Fit:
        temperatures = checked_temperatures(self.temperatures)
        by_ece = grid_search(objective, "adaece", self.gammas, temperatures)
        fit = grid_search(objective, "nll", (by_ece.parameters["gamma"],), temperatures)
        of_gamma = {name: hit for name, hit in by_ece.boundaries.items() if name == "gamma"}
        return replace(fit, evaluations=by_ece.evaluations, boundaries=of_gamma | fit.boundaries)
