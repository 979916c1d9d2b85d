"""The criteria on one set of logits as functions of gamma and temperature."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from focalcal.calibration import metrics
from focalcal.calibration.catalogue import CRITERIA
from focalcal.calibration.criteria import criterion_value, focal_loss_of_logs
from focalcal.theory.psi import log_psi


class Objective:
    """All criteria on one set of logits; surfaces are computed once and kept."""

    def __init__(self, logits: ArrayLike, labels: ArrayLike, bins: int = 15, adaece: str = "split") -> None:
        self.logits = np.ascontiguousarray(logits, dtype=np.float64)
        self.labels = metrics.checked_labels(labels, *self.logits.shape)
        self.bins = bins
        self.adaece = adaece
        self._rows: dict[tuple, dict[str, NDArray]] = {}
        self._mapped: dict[float, Objective] = {}

    def surfaces(self, gammas: Sequence[float], temperatures: ArrayLike) -> dict[str, NDArray[np.float64]]:
        """Return each criterion at every point of the grid, float64 (gammas, temperatures)."""
        temperatures = np.asarray(temperatures, dtype=np.float64)
        key = temperatures.tobytes()
        missing = [gamma for gamma in dict.fromkeys(gammas) if (gamma, key) not in self._rows]
        for gamma in missing:
            scores = [self._scores(gamma, temperature) for temperature in temperatures]
            self._rows[gamma, key] = dict(zip(CRITERIA, np.array(scores).T, strict=True))
        return {
            criterion: np.stack([self._rows[gamma, key][criterion] for gamma in gammas])
            for criterion in CRITERIA
        }

    def points(self, gammas: ArrayLike, temperatures: ArrayLike) -> dict[str, NDArray[np.float64]]:
        """Return each criterion at the pairs (gammas[i], temperatures[i]), float64 (m,)."""
        scores = [self._scores(*pair) for pair in zip(gammas, temperatures, strict=True)]
        return dict(zip(CRITERIA, np.array(scores).T, strict=True))

    def nll(self, gammas: ArrayLike, temperatures: ArrayLike) -> NDArray[np.float64]:
        """Return the NLL at every point of a grid, float64 (gammas, temperatures)."""
        return np.array([[self._scores(gamma, t)[0] for t in temperatures] for gamma in gammas])

    def focal_losses(self, gamma: float, temperatures: ArrayLike) -> NDArray[np.float64]:
        """Return the mean focal loss of softmax(logits / T) at each temperature, float64 (t,)."""
        return np.array(
            [focal_loss_of_logs(log_psi(self.logits, 0.0, t), self.labels, gamma) for t in temperatures]
        )

    def mapped(self, gamma: float) -> "Objective":
        """Return the objective of the logits log Psi^gamma(softmax(logits))."""
        if gamma not in self._mapped:
            self._mapped[gamma] = Objective(log_psi(self.logits, gamma), self.labels, self.bins, self.adaece)
        return self._mapped[gamma]

    def _scores(self, gamma: float, temperature: float) -> tuple[float, ...]:
        logs = log_psi(self.logits, gamma, temperature)
        return tuple(criterion_value(name, logs, self.labels, self.bins, self.adaece) for name in CRITERIA)
