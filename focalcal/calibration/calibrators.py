"""Calibrators: `fit(logits, labels)` on validation data, `predict_proba(logits)` on any data.

    from focalcal.calibration.calibrators import FocalTemperatureScaling
    fts = FocalTemperatureScaling().fit(val_logits, val_labels)
    probs = fts.predict_proba(test_logits)

After `fit`: `gamma_` and `temperature_` of the map, `score_` (the criterion on the fitted data; None where
nothing is fitted), `evaluations_` (cost of the search in points), `bound_hit_` and `gamma_bound_hit_`
("none", "low" or "high": the value found is the end of its range, so the optimum may lie outside).

A new calibrator is a subclass of `Calibrator` that defines `_search`, `configured` and, where its map is not
Psi^gamma(softmax(logits / T)), `predict_log_proba`, with a declaration above it (`catalogue.Method`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from focalcal.calibration.catalogue import calibrator
from focalcal.calibration.criteria import criterion_value, focal_loss_of_logs
from focalcal.calibration.fit import Fit
from focalcal.calibration.metrics import checked_labels
from focalcal.calibration.objective import Objective
from focalcal.calibration.search import (
    K24_GAMMAS,
    K24_TEMPERATURES,
    SEARCHES,
    checked_temperatures,
    focal_loss_search,
    grid_search,
)
from focalcal.theory.psi import log_psi


@dataclass(frozen=True)
class Settings:
    """What all methods of one calibration job have in common."""

    gammas: tuple[float, ...]
    temperatures: NDArray[np.float64]
    bins: int = 15
    adaece: str = "split"


class Calibrator:
    """A map from logits to probabilities; a subclass says how it is fitted."""

    criterion: str | None = None

    def __init__(self, *, bins: int = 15, adaece: str = "split") -> None:
        self.bins = bins
        self.adaece = adaece
        self.fit_: Fit | None = None

    @classmethod
    def configured(cls, criterion: str | None, settings: Settings, training_gamma: float | None) -> Self:
        """Return the calibrator that a calibration job fits."""
        raise NotImplementedError

    def fit(self, logits: ArrayLike, labels: ArrayLike) -> Self:
        """Return this calibrator, fitted to logits (n, k) and labels (n,)."""
        return self.fit_objective(Objective(logits, labels, self.bins, self.adaece))

    def fit_objective(self, objective: Objective) -> Self:
        """Return this calibrator, fitted to an objective that several calibrators may share."""
        self.fit_ = self._search(objective)
        return self

    def predict_proba(self, logits: ArrayLike) -> NDArray[np.float64]:
        """Return calibrated probabilities (n, k), rows summing to 1."""
        with np.errstate(under="ignore"):
            return np.exp(self.predict_log_proba(logits))

    def predict_log_proba(self, logits: ArrayLike) -> NDArray[np.float64]:
        """Return the logarithms of the calibrated probabilities (n, k), finite also where those underflow."""
        return log_psi(logits, self.gamma_, self.temperature_)

    def score(self, logits: ArrayLike, labels: ArrayLike) -> float:
        """Return the criterion that was minimised, on other data."""
        log_probs = self.predict_log_proba(logits)
        labels = checked_labels(labels, *log_probs.shape)
        return criterion_value(self.criterion, log_probs, labels, self.bins, self.adaece)

    @property
    def gamma_(self) -> float:
        """Return the gamma of the fitted map."""
        return self._fitted().gamma

    @property
    def temperature_(self) -> float:
        """Return the temperature of the fitted map."""
        return self._fitted().temperature

    @property
    def score_(self) -> float | None:
        """Return the criterion's value on the fitted data."""
        return self._fitted().score

    @property
    def evaluations_(self) -> int:
        """Return how many points the search evaluated."""
        return self._fitted().evaluations

    @property
    def bound_hit_(self) -> str:
        """Return "low" or "high" where the temperature is the end of its range, else "none"."""
        return self._fitted().temperature_bound

    @property
    def gamma_bound_hit_(self) -> str:
        """Return "low" or "high" where gamma is the end of a range searched between its ends, else "none"."""
        return self._fitted().gamma_bound

    def _search(self, objective: Objective) -> Fit:
        raise NotImplementedError

    def _fitted(self) -> Fit:
        if self.fit_ is None:
            raise ValueError(f"this {type(self).__name__} is not fitted; call fit(logits, labels) first")
        return self.fit_


@calibrator(id="none", label="as trained", color="grey", marker="o", criteria=(), compared_with=())
class Uncalibrated(Calibrator):
    """Method `none`: the softmax of the logits."""

    @classmethod
    def configured(cls, _criterion: None, settings: Settings, _training_gamma: float | None) -> Self:
        """Return the calibrator that a calibration job fits."""
        return cls(bins=settings.bins, adaece=settings.adaece)

    def _search(self, _objective: Objective) -> Fit:
        return Fit(gamma=0.0, temperature=1.0, score=None, evaluations=0)


@calibrator(
    id="ts",
    label="TS",
    full_label="temperature scaling (TS)",
    color="blue",
    marker="s",
    compared_with=("none",),
)
class TemperatureScaling(Calibrator):
    """Method `ts`: softmax(logits / T), T from a grid, by default K24's."""

    def __init__(
        self,
        criterion: str = "nll",
        temperatures: ArrayLike | None = None,
        *,
        bins: int = 15,
        adaece: str = "split",
    ) -> None:
        super().__init__(bins=bins, adaece=adaece)
        self.criterion = criterion
        self.temperatures = checked_temperatures(K24_TEMPERATURES if temperatures is None else temperatures)

    @classmethod
    def configured(cls, criterion: str, settings: Settings, _training_gamma: float | None) -> Self:
        """Return the calibrator that a calibration job fits."""
        return cls(criterion, settings.temperatures, bins=settings.bins, adaece=settings.adaece)

    def _search(self, objective: Objective) -> Fit:
        return grid_search(objective, self.criterion, (0.0,), self.temperatures)


@calibrator(
    id="fts",
    label="FTS",
    full_label="focal temperature scaling (FTS)",
    color="vermilion",
    marker="D",
    compared_with=("ts", "none"),
)
class FocalTemperatureScaling(TemperatureScaling):
    """Method `fts`: Psi^gamma(softmax(logits / T)), K24 Sec. 4.2, by default on K24's grids.

    `search`: "grid" evaluates every pair; "line" finds T at two gammas and then walks the line through them
    (K24 Sec. 5.2, three times the cost of temperature scaling); "continuous" minimises the NLL over all gamma
    and T between the smallest and largest of the grids.
    """

    configured_search = "grid"

    def __init__(
        self,
        criterion: str = "nll",
        gammas: Sequence[float] | None = None,
        temperatures: ArrayLike | None = None,
        search: str = "grid",
        *,
        bins: int = 15,
        adaece: str = "split",
    ) -> None:
        super().__init__(criterion, temperatures, bins=bins, adaece=adaece)
        if search not in SEARCHES:
            raise ValueError(f"search is {search!r}; expected one of {', '.join(SEARCHES)}")
        self.gammas = tuple(float(gamma) for gamma in (K24_GAMMAS if gammas is None else gammas))
        self.search = search

    @classmethod
    def configured(cls, criterion: str, settings: Settings, _training_gamma: float | None) -> Self:
        """Return the calibrator that a calibration job fits."""
        return cls(
            criterion,
            settings.gammas,
            settings.temperatures,
            cls.configured_search,
            bins=settings.bins,
            adaece=settings.adaece,
        )

    def _search(self, objective: Objective) -> Fit:
        return SEARCHES[self.search](objective, self.criterion, self.gammas, self.temperatures)


@calibrator(
    id="fts-line",
    label="FTS, line search",
    color="orange",
    marker="v",
    narrowest_range=0.0,
    shown=False,
    compared_with=("fts",),
)
class LineFocalTemperatureScaling(FocalTemperatureScaling):
    """Method `fts-line`: focal temperature scaling, searched along a line."""

    configured_search = "line"


@calibrator(
    id="fts-continuous",
    label="FTS, continuous",
    color="purple",
    marker="P",
    criteria=("nll",),
    narrowest_range=1.2e-3,
    shown=False,
    compared_with=("fts",),
)
class ContinuousFocalTemperatureScaling(FocalTemperatureScaling):
    """Method `fts-continuous`: focal temperature scaling, NLL minimised over a rectangle of (gamma, T)."""

    configured_search = "continuous"


@calibrator(
    id="psi",
    label="Ψ",
    color="green",
    marker="^",
    criteria=(),
    needs_training_gamma=True,
    compared_with=("none",),
)
class Recovery(Calibrator):
    """Method `psi`: Psi at the gamma the model was trained with (C21 Thm. 11), nothing fitted."""

    def __init__(self, training_gamma: float, *, bins: int = 15, adaece: str = "split") -> None:
        super().__init__(bins=bins, adaece=adaece)
        self.training_gamma = float(training_gamma)

    @classmethod
    def configured(cls, _criterion: None, settings: Settings, training_gamma: float) -> Self:
        """Return the calibrator that a calibration job fits."""
        return cls(training_gamma, bins=settings.bins, adaece=settings.adaece)

    def _search(self, _objective: Objective) -> Fit:
        return Fit(gamma=self.training_gamma, temperature=1.0, score=None, evaluations=0)


class _WithTrainingGamma(TemperatureScaling):
    """Temperature scaling of a model whose training gamma is known."""

    def __init__(
        self,
        training_gamma: float,
        criterion: str = "nll",
        temperatures: ArrayLike | None = None,
        *,
        bins: int = 15,
        adaece: str = "split",
    ) -> None:
        super().__init__(criterion, temperatures, bins=bins, adaece=adaece)
        self.training_gamma = float(training_gamma)

    @classmethod
    def configured(cls, criterion: str, settings: Settings, training_gamma: float) -> Self:
        """Return the calibrator that a calibration job fits."""
        return cls(
            training_gamma, criterion, settings.temperatures, bins=settings.bins, adaece=settings.adaece
        )


@calibrator(id="ts-psi", label="TS then Ψ", needs_training_gamma=True, shown=False, compared_with=())
class TemperatureThenRecovery(_WithTrainingGamma):
    """Method `ts-psi`: focal temperature scaling with gamma fixed to the training gamma."""

    def _search(self, objective: Objective) -> Fit:
        return grid_search(objective, self.criterion, (self.training_gamma,), self.temperatures)


@calibrator(id="psi-ts", label="Ψ then TS", needs_training_gamma=True, shown=False, compared_with=())
class RecoveryThenTemperature(_WithTrainingGamma):
    """Method `psi-ts`: Psi at the training gamma first, then temperature scaling of its log-probabilities."""

    def _search(self, objective: Objective) -> Fit:
        mapped = objective.mapped(self.training_gamma)
        fit = grid_search(mapped, self.criterion, (0.0,), self.temperatures)
        return Fit(self.training_gamma, fit.temperature, fit.score, fit.evaluations, fit.temperature_bound)

    def predict_log_proba(self, logits: ArrayLike) -> NDArray[np.float64]:
        """Return the logarithms of softmax(log Psi(softmax(logits)) / T), (n, k)."""
        return log_psi(log_psi(logits, self.gamma_), 0.0, self.temperature_)


@calibrator(
    id="ts-focal",
    label="TS by focal loss",
    criteria=("focal",),
    needs_training_gamma=True,
    shown=False,
    compared_with=(),
)
class FocalLossTemperature(_WithTrainingGamma):
    """Method `ts-focal`: temperature scaling, T fitted by the focal loss of the training gamma (C21)."""

    def __init__(
        self,
        training_gamma: float,
        criterion: str = "focal",
        temperatures: ArrayLike | None = None,
        *,
        bins: int = 15,
        adaece: str = "split",
    ) -> None:
        if criterion != "focal":
            raise ValueError(
                f"criterion is {criterion!r}; this calibrator minimises only 'focal', the focal loss"
            )
        super().__init__(training_gamma, criterion, temperatures, bins=bins, adaece=adaece)

    def score(self, logits: ArrayLike, labels: ArrayLike) -> float:
        """Return the focal loss of the temperature-scaled predictions on other data."""
        log_probs = log_psi(logits, 0.0, self.temperature_)
        labels = checked_labels(labels, *log_probs.shape)
        return focal_loss_of_logs(log_probs, labels, self.training_gamma)

    def _search(self, objective: Objective) -> Fit:
        return focal_loss_search(objective, self.training_gamma, self.temperatures)


@calibrator(
    id="ts-focal-psi",
    label="TS by focal loss, then Ψ",
    criteria=("focal",),
    needs_training_gamma=True,
    shown=False,
    compared_with=(),
)
class FocalLossTemperatureThenRecovery(FocalLossTemperature):
    """Method `ts-focal-psi`: T fitted by the focal loss, then Psi at the training gamma (C21's TS_FL)."""

    def predict_log_proba(self, logits: ArrayLike) -> NDArray[np.float64]:
        """Return the logarithms of Psi(softmax(logits / T)), (n, k)."""
        return log_psi(logits, self.training_gamma, self.temperature_)

    def _search(self, objective: Objective) -> Fit:
        fit = super()._search(objective)
        return Fit(self.training_gamma, fit.temperature, fit.score, fit.evaluations, fit.temperature_bound)
