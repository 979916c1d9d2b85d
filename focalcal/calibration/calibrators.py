"""Calibrators: `fit(logits, labels)` on validation data, `predict_proba(logits)` on any data.

    from focalcal import FocalTemperatureScaling
    fts = FocalTemperatureScaling().fit(val_logits, val_labels)
    probs = fts.predict_proba(test_logits)

A new calibrator is one subclass of `Calibrator` with one declaration above it (`catalogue.Method`). It
defines `_search`, which returns a `Fit`, and `log_map`, which reads nothing but `parameters`; both get
checked arrays. The calibration job fills in those constructor arguments that are fields of `Context`.
"""

import importlib
import inspect
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from focalcal.calibration.catalogue import CRITERIA, METHODS, calibrator
from focalcal.calibration.conventions import EstimatorConventions
from focalcal.calibration.fitting.continuous import best_focal_map, best_temperature
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import (
    K24_GAMMAS,
    Fit,
    checked_temperatures,
    focal_loss_search,
    grid_search,
    line_search,
)
from focalcal.calibration.metrics import criterion_value, focal_loss_of_logs
from focalcal.calibration.parameters import FOCAL_MAP, Numbers, checked_classes
from focalcal.common.arrays import label_vector, logit_matrix
from focalcal.common.messages import allowed_names
from focalcal.theory.psi import log_psi

IDENTITY = {"gamma": 0.0, "temperature": 1.0}
"""Parameters of the focal map that leave the softmax of the logits as it is."""
AS_TRAINED = {"method": "none", "criterion": None, "parameters": IDENTITY}
"""Record of the model as it is, which `load_calibrator` restores."""
SIDES = {"low": "smallest", "high": "largest"}


@dataclass(frozen=True)
class Context:
    """What a job can tell a calibrator: one field per constructor argument, None for the default."""

    criterion: str | None = None
    training_gamma: float | None = None
    gammas: tuple[float, ...] | None = None
    temperatures: NDArray[np.float64] | None = None
    bins: int | None = None
    adaece: str | None = None


@dataclass(eq=False)
class Calibrator(EstimatorConventions):
    """A map from logits to probabilities with parameters that are fitted to validation data.

    The base class of all calibrators. They follow scikit-learn's conventions (`get_params`, `set_params`,
    `clone`, checks in `fit`), but take logits in place of features, and `score` is the criterion, of which
    lower is better.

    Parameters
    ----------
    bins : int
        Number of bins of the criteria ECE and AdaECE.
    adaece : {"split", "authors"}
        Variant of the equal-mass bins of AdaECE; see `binning`.

    Attributes
    ----------
    parameters : dict
        All that predictions need, by name: numbers, arrays or nested lists of numbers.
    score_ : float or None
        The criterion on the data fitted to; None where nothing is minimised.
    boundaries_ : dict
        "low" or "high" for each parameter that stopped at the boundary of what is searched.
    classes_, n_features_in_ : array (k,), int
        0..k-1 and k, the number of classes that it was fitted to and predicts.

    Examples
    --------
    >>> from sklearn.base import clone
    >>> from focalcal import TemperatureScaling
    >>> clone(TemperatureScaling("ece", bins=10)).set_params(bins=20).get_params()
    {'criterion': 'ece', 'temperatures': None, 'bins': 20, 'adaece': 'split'}
    """

    declared: ClassVar[Mapping[str, Numbers] | None] = None
    """What `parameters` are, by name; None for any numbers."""
    # Not a field here, so that subclasses place it among their own.
    criterion = cast("Any", None)
    bins: int = field(default=15, kw_only=True)
    adaece: str = field(default="split", kw_only=True)

    @classmethod
    def from_context(cls, context: Context) -> Self:
        """Return an unfitted calibrator that takes from the context what its constructor asks for."""
        known = {name: value for name, value in vars(context).items() if value is not None}
        return cls(**{name: known[name] for name in inspect.signature(cls).parameters if name in known})

    def to_record(self) -> dict[str, Any]:
        """Return what `load_calibrator` needs, with score, cost and boundaries of the fit, JSON-ready."""
        fit = self._fitted()
        return {
            "method": _method_id(type(self)),
            "criterion": self.criterion,
            "classes": getattr(self, "n_features_in_", None),
            "parameters": {name: np.asarray(value).tolist() for name, value in fit.parameters.items()},
            "validation_score": fit.score,
            "evaluations": fit.evaluations,
            "boundaries": fit.boundaries,
        }

    def fit(self, logits: ArrayLike, labels: ArrayLike) -> Self:
        """Return this calibrator, fitted to finite validation logits (n, k) and labels 0..k-1 (n,).

        A gamma or temperature that stops at the boundary of what is searched is a
        `sklearn.exceptions.ConvergenceWarning`.
        """
        self.fit_objective(Objective(logits, labels, self.bins, self.adaece))
        for name, side in self.boundaries_.items():
            if name.endswith(("gamma", "temperature")):
                from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415 - rarely needed

                found = f"{name} {self.parameters[name]:g} is the {SIDES[side]} that was searched"
                warnings.warn(f"{found}: a better one may lie beyond", ConvergenceWarning, stacklevel=2)
        return self

    def fit_objective(self, objective: Objective, *, scored: bool = True) -> Self:
        """Return this calibrator, fitted to an objective that several calibrators may share.

        A search that does not give the criterion's value is scored by a prediction, unless `scored` is False.
        """
        self.fit_ = self._search(objective)
        self.note_classes(objective.logits.shape[1])
        if scored and self.criterion is not None and self.fit_.score is None:
            self.fit_ = replace(self.fit_, score=self.score(objective.logits, objective.labels))
        return self

    def predict_proba(self, logits: ArrayLike) -> NDArray[np.float64]:
        """Return calibrated probabilities, float64 (n, k), of any logits (n, k) of the same model."""
        with np.errstate(under="ignore"):
            return np.exp(self.predict_log_proba(logits))

    def predict_log_proba(self, logits: ArrayLike) -> NDArray[np.float64]:
        """Return the logarithms of `predict_proba`, finite also where the probabilities underflow."""
        self._fitted()
        return self.log_map(self._checked(logits))

    def predict(self, logits: ArrayLike) -> NDArray[np.int64]:
        """Return the most probable class, 0..k-1, of each sample (n,)."""
        return self.predict_log_proba(logits).argmax(axis=1)

    def score(self, logits: ArrayLike, labels: ArrayLike) -> float:
        """Return the criterion that was minimised, on other logits (n, k) and labels (n,)."""
        log_probs = self.predict_log_proba(logits)
        return criterion_value(self.criterion, log_probs, labels, self.bins, self.adaece)

    @property
    def parameters(self) -> dict[str, Any]:
        """Return all that predictions need, by name: numbers, arrays or nested lists of numbers."""
        return self._fitted().parameters

    @property
    def score_(self) -> float | None:
        """Return the criterion on the data fitted to; None where nothing is minimised."""
        return self._fitted().score

    @property
    def boundaries_(self) -> dict[str, str]:
        """Return "low" or "high" for each parameter that stopped at the boundary of what is searched."""
        return self._fitted().boundaries

    @classmethod
    def check_parameters(cls, parameters: Any, classes: Any = None) -> int | None:
        """Return how many classes parameters are for, None if any; raise ValueError if not allowed."""
        return checked_classes(cls.declared, parameters, classes)

    def _search(self, objective: Objective) -> Fit:
        """Return what fits the objective's `logits` and `labels` best."""
        raise NotImplementedError

    def log_map(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log-probabilities (n, k) of checked logits."""
        raise NotImplementedError

    def note_classes(self, classes: int) -> None:
        """Set `n_features_in_` and `classes_`."""
        self.n_features_in_ = classes
        self.classes_ = np.arange(classes)

    def _checked(self, logits: ArrayLike) -> NDArray[np.float64]:
        """Return logits (n, k) to predict from, of as many classes as those fitted to."""
        return logit_matrix(logits, fewest=0, classes=getattr(self, "n_features_in_", None))

    def _fitted(self) -> Fit:
        if not hasattr(self, "fit_"):
            from sklearn.exceptions import NotFittedError  # noqa: PLC0415 - a ValueError, and rarely needed

            raise NotFittedError(f"this {type(self).__name__} is not fitted; call fit(logits, labels) first")
        return self.fit_


def calibrator_class(method: str) -> type[Calibrator]:
    """Return the class of a method of the catalogue."""
    return getattr(importlib.import_module(METHODS[method].module), METHODS[method].class_name)


def new_calibrator(method: str, **settings: Any) -> Calibrator:
    """Return an unfitted calibrator by its id (docs/names.md).

    Parameters
    ----------
    method : str
        Such as "ts", "fts" or "svs"; also the name of one of your own extensions.
    settings : optional
        Arguments of its class, such as `criterion`.

    Returns
    -------
    Calibrator
        With `fit(logits, labels)`, `predict`, `predict_proba` and `predict_log_proba`.

    Raises
    ------
    ValueError
        If no calibrator has this id.

    Examples
    --------
    >>> import focalcal
    >>> fitted = focalcal.calibrator("ts").fit([[2.0, 0.0], [0.0, 2.0], [2.0, 0.0]], [0, 1, 1])
    >>> fitted.predict([[1.0, 0.0]])
    array([0])
    """
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"calibrator is {method!r}; {allowed_names(method, METHODS)}")
    return calibrator_class(method)(**settings)


def load_calibrator(record: Mapping[str, Any]) -> Calibrator:
    """Return the fitted calibrator that `to_record` described; its predictions are bit-identical.

    The keys method, criterion and parameters are enough, as in the predictions of recovery.json. Raises
    ValueError for what is not such a record.
    """
    if not isinstance(record, Mapping) or not {"method", "criterion", "parameters"} <= record.keys():
        raise ValueError("the record lacks keys; allowed: method, criterion, parameters")
    method, criterion = record["method"], record["criterion"]
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"method is {method!r}; {allowed_names(method, METHODS)}")
    own = METHODS[method].criteria
    if criterion not in (criteria := CRITERIA if own is None else own or (None,)):
        raise ValueError(f"criterion is {criterion!r}; allowed: {', '.join(map(str, criteria))}")
    kind = calibrator_class(method)
    classes = kind.check_parameters(record["parameters"], record.get("classes"))
    score, cost = record.get("validation_score"), record.get("evaluations", 0)
    if score is not None and not (type(score) in {int, float} and math.isfinite(score)):
        raise ValueError(f"validation_score is {score!r}; allowed: a finite number, or null")
    boundaries = record.get("boundaries", {})
    sides = boundaries.values() if isinstance(boundaries, Mapping) else [None]
    if not all(isinstance(side, str) and side in SIDES for side in sides):
        raise ValueError(f"boundaries is {boundaries!r}; allowed: low or high by parameter")
    restored = kind.from_context(Context(criterion=criterion))
    restored.fit_ = Fit(record["parameters"], score, cost, dict(boundaries))
    if classes is not None:
        restored.note_classes(classes)
    return restored


class FocalMap(Calibrator):
    """Psi^gamma(softmax(logits / T)): the form of all calibrators with a gamma and a temperature."""

    declared = FOCAL_MAP

    def log_map(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log Psi^gamma(softmax(logits / T)), float64 (n, k), finite for finite logits."""
        return log_psi(logits, self.gamma_, self.temperature_)

    @property
    def gamma_(self) -> float:
        """Return the gamma of the fitted map."""
        return self.parameters["gamma"]

    @property
    def temperature_(self) -> float:
        """Return the temperature of the fitted map."""
        return self.parameters["temperature"]


@calibrator(
    id="none",
    label="as trained",
    color="grey",
    marker="o",
    criteria=(),
    fixed=("gamma", "temperature"),
)
class Uncalibrated(FocalMap):
    """Method `none`: the softmax of the logits."""

    def _search(self, _objective: Objective) -> Fit:
        return Fit(dict(IDENTITY))


@dataclass(eq=False)
class _Exact(FocalMap):
    """A focal map fitted by log-loss without a grid, unless one is given; other criteria need a grid."""

    criterion: str = "nll"

    @classmethod
    def from_context(cls, context: Context) -> Self:
        """Return an unfitted calibrator to which the job's grid is given only where it is needed."""
        exact = context.criterion in {None, "nll"}
        return super().from_context(replace(context, gammas=None, temperatures=None) if exact else context)


@calibrator(
    id="ts",
    label="TS",
    full_label="temperature scaling (TS)",
    color="blue",
    marker="s",
    fixed=("gamma",),
)
@dataclass(eq=False)
class TemperatureScaling(_Exact):
    """Temperature scaling, method `ts`: softmax(logits / T).

    Parameters
    ----------
    criterion : {"nll", "ece", "adaece"}
        What the temperature minimises on validation data.
    temperatures : array (t,), optional
        Ascending grid of temperatures to search. Without it, T minimises the log-loss exactly, over six
        decades around the spread of the logits; criteria that are not smooth take K24's grid, 0.01 to 5.

    Attributes
    ----------
    temperature_ : float
        The best temperature.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 3, 500)
    >>> logits = 2 * (np.eye(3)[labels] + rng.normal(size=(500, 3)))  # overconfident
    >>> scaling = TemperatureScaling().fit(logits, labels)
    >>> round(scaling.temperature_, 3)
    1.815
    >>> scaling.predict_proba(logits[:1]).round(3)
    array([[0.024, 0.013, 0.963]])
    """

    temperatures: ArrayLike | None = None

    def _search(self, objective: Objective) -> Fit:
        if self.temperatures is None and self.criterion == "nll":
            return best_temperature(objective)
        return grid_search(objective, self.criterion, (0.0,), checked_temperatures(self.temperatures))


@calibrator(
    id="fts",
    label="FTS",
    full_label="focal temperature scaling (FTS)",
    color="vermilion",
    marker="D",
    replaces=("fts-k24", "fts-line", "fts-predicted"),
)
@dataclass(eq=False)
class FocalTemperatureScaling(_Exact):
    """Focal temperature scaling, method `fts`: Psi^gamma(softmax(logits / T)), K24 Sec. 4.2.

    Parameters
    ----------
    criterion : {"nll", "ece", "adaece"}
        What gamma and the temperature minimise on validation data.
    gammas : sequence of float, optional
        Gammas to search, with `temperatures`. Without either, gamma and T minimise the log-loss exactly,
        gamma from -0.95 to 100 and T over six decades around the spread of the logits, which never has a
        higher log-loss than temperature scaling; criteria that are not smooth take K24's grids.
    temperatures : array (t,), optional
        Ascending grid of temperatures to search, by default K24's: 0.01 to 5.

    Attributes
    ----------
    gamma_, temperature_ : float
        The best pair found.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 3, 500)
    >>> logits = 2 * (np.eye(3)[labels] + rng.normal(size=(500, 3)))  # overconfident
    >>> scaling = FocalTemperatureScaling().fit(logits, labels)
    >>> round(scaling.gamma_, 3), round(scaling.temperature_, 3)
    (2.081, 3.428)
    >>> scaling.score_ < TemperatureScaling().fit(logits, labels).score_
    True
    """

    gammas: Sequence[float] | None = None
    temperatures: ArrayLike | None = None

    def _search(self, objective: Objective) -> Fit:
        if self.gammas is None and self.temperatures is None and self.criterion == "nll":
            return best_focal_map(objective)
        gammas = K24_GAMMAS if self.gammas is None else tuple(float(gamma) for gamma in self.gammas)
        return grid_search(objective, self.criterion, gammas, checked_temperatures(self.temperatures))


@dataclass(eq=False)
class GridFocalScaling(FocalMap):
    """Focal temperature scaling that searches a grid in its own way.

    Parameters
    ----------
    criterion : {"nll", "ece", "adaece"}
        What gamma and the temperature minimise on validation data.
    gammas : sequence of float, optional
        Gammas of the grid; by default those of K24.
    temperatures : array (t,), optional
        Ascending grid of temperatures; by default that of K24, 0.01 to 5.

    Attributes
    ----------
    gamma_, temperature_ : float
        The best pair found.
    """

    criterion: str = "nll"
    gammas: Sequence[float] = K24_GAMMAS
    temperatures: ArrayLike | None = None


@calibrator(
    id="fts-line",
    label="FTS, line search",
    color="orange",
    marker="v",
    needs_range=True,
    shown=False,
)
class LineFocalTemperatureScaling(GridFocalScaling):
    """Method `fts-line`: T at two gammas of the grid, then the line through them (K24 Sec. 5.2).

    It costs three times as much as temperature scaling on the grid.
    """

    def _search(self, objective: Objective) -> Fit:
        return line_search(objective, self.criterion, self.gammas, checked_temperatures(self.temperatures))


@calibrator(
    id="psi",
    label="Ψ",
    color="green",
    marker="^",
    criteria=(),
    needs_training_gamma=True,
    fixed=("gamma", "temperature"),
)
@dataclass(eq=False)
class PosteriorRecovery(FocalMap):
    """Method `psi`: Psi at the gamma that the model was trained with (C21 Thm. 11); nothing is fitted."""

    training_gamma: float | None = None

    def _search(self, _objective: Objective) -> Fit:
        return Fit(IDENTITY | {"gamma": _given(self.training_gamma)})


@dataclass(eq=False)
class _WithTrainingGamma(FocalMap):
    """Temperature scaling of a model that was trained with focal loss of `training_gamma`."""

    training_gamma: float | None = None
    criterion: str = "nll"
    temperatures: ArrayLike | None = None

    def _then_recovered(self, fit: Fit) -> Fit:
        """Return a fit of the temperature with the training gamma in place of its gamma."""
        return replace(fit, parameters=fit.parameters | {"gamma": _given(self.training_gamma)})


@calibrator(
    id="ts-psi",
    label="TS then Ψ",
    needs_training_gamma=True,
    shown=False,
    fixed=("gamma",),
)
class TemperatureThenRecovery(_WithTrainingGamma):
    """Method `ts-psi`: focal temperature scaling with gamma fixed to the training gamma."""

    def _search(self, objective: Objective) -> Fit:
        temperatures = checked_temperatures(self.temperatures)
        return grid_search(objective, self.criterion, (_given(self.training_gamma),), temperatures)


@calibrator(
    id="psi-ts",
    label="Ψ then TS",
    needs_training_gamma=True,
    shown=False,
    fixed=("gamma",),
)
class RecoveryThenTemperature(_WithTrainingGamma):
    """Method `psi-ts`: Psi at the training gamma first, then temperature scaling of its log-probabilities."""

    def _search(self, objective: Objective) -> Fit:
        mapped = objective.mapped(_given(self.training_gamma))
        temperatures = checked_temperatures(self.temperatures)
        return self._then_recovered(grid_search(mapped, self.criterion, (0.0,), temperatures))

    def log_map(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the logarithms of softmax(log Psi(softmax(logits)) / T), (n, k)."""
        return log_psi(log_psi(logits, self.gamma_), 0.0, self.temperature_)


@calibrator(
    id="ts-focal",
    label="TS by focal loss",
    criteria=("focal",),
    needs_training_gamma=True,
    shown=False,
)
@dataclass(eq=False)
class FocalLossTemperature(_WithTrainingGamma):
    """Method `ts-focal`: temperature scaling, T fitted by the focal loss of the training gamma (C21)."""

    criterion: str = "focal"

    def score(self, logits: ArrayLike, labels: ArrayLike) -> float:
        """Return the focal loss of the temperature-scaled predictions on other data."""
        log_probs = log_psi(self._checked(logits), 0.0, self.temperature_)
        labels = label_vector(labels, *log_probs.shape)
        return focal_loss_of_logs(log_probs, labels, _given(self.training_gamma))

    def _search(self, objective: Objective) -> Fit:
        if self.criterion != "focal":
            raise ValueError(
                f"criterion is {self.criterion!r}; this calibrator minimises only 'focal', the focal loss"
            )
        temperatures = checked_temperatures(self.temperatures)
        return focal_loss_search(objective, _given(self.training_gamma), temperatures)


@calibrator(
    id="ts-focal-psi",
    label="TS by focal loss, then Ψ",
    criteria=("focal",),
    needs_training_gamma=True,
    shown=False,
)
class FocalLossTemperatureThenRecovery(FocalLossTemperature):
    """Method `ts-focal-psi`: T fitted by the focal loss, then Psi at the training gamma (C21's TS_FL)."""

    def _search(self, objective: Objective) -> Fit:
        return self._then_recovered(super()._search(objective))


def _method_id(kind: type[Calibrator]) -> str:
    """Return the id that the catalogue has for a class; raise ValueError if the class is not declared."""
    for method in METHODS.values():
        if (method.module, method.class_name) == (kind.__module__, kind.__name__):
            return method.id
    raise ValueError(
        f"{kind.__name__} is not declared as a calibrator; put @calibrator(id=..., label=...) above it"
    )


def _given(training_gamma: float | None) -> float:
    """Return the training gamma as a float; raise ValueError if it is not known."""
    if training_gamma is None:
        raise ValueError(
            "training_gamma is None; give the gamma of the focal loss that the model was trained with"
        )
    return float(training_gamma)
