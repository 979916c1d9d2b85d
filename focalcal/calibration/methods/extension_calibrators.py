"""The user's own calibrators, extensions/calibrators/NAME.py, as calibrators of the catalogue.

The user's class has `fit(logits, labels)`, which sets attributes, and `predict_proba(logits)`, which reads
them. The attributes are the parameters of the fit: numbers and arrays of numbers, which files keep exactly.
Each name is an attribute of this module: the calibrator that wraps the class.
"""

import functools
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.calibrators import Calibrator
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import Fit
from focalcal.calibration.methods.affine import LOWEST_LOG
from focalcal.calibration.scores.predictions import ROW_SUM_TOLERANCE
from focalcal.common.errors import UserError
from focalcal.common.extensions import extension_attributes, extension_file, load_extension


class OwnCalibrator(Calibrator):
    """A calibrator that the user wrote; `name` is that of its file."""

    name: ClassVar[str]

    def log_map(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the logarithms of what the user's `predict_proba` returns, checked, float64 (n, k)."""
        own = load_extension("calibrators", self.name)()
        vars(own).update({key: _restored(value) for key, value in self.parameters.items()})
        probs = np.asarray(own.predict_proba(_read_only(logits)))
        self._check_probabilities(probs, logits.shape)
        # As for imported probabilities, one of 0 has a finite log-loss: 87.
        return np.log(np.maximum(probs.astype(np.float64), np.exp(LOWEST_LOG)))

    def _search(self, objective: Objective) -> Fit:
        own = load_extension("calibrators", self.name)()
        own.fit(_read_only(objective.logits), _read_only(objective.labels))
        # Predictions use the same form as a file has, so that saving changes no bit.
        return Fit({key: self._kept(key, value) for key, value in vars(own).items()}, evaluations=1)

    def _kept(self, key: str, value: Any) -> Any:
        """Return an attribute as plain numbers; raise a UserError if it is something else."""
        array = np.asarray(value)
        if array.dtype.kind not in "fiub" or not np.all(np.isfinite(array)):
            kind = (
                f"{array.dtype} with NaN or infinities" if array.dtype.kind == "f" else type(value).__name__
            )
            raise UserError(
                f"{self._file}: fit set the attribute {key!r} to {kind}; allowed: finite numbers and arrays "
                f"of them, which can be saved; keep other things in local variables"
            )
        return array.tolist()

    def _check_probabilities(self, probs: NDArray, shape: tuple[int, ...]) -> None:
        """Raise a UserError unless these are probabilities (n, k)."""
        if probs.shape != shape or probs.dtype.kind != "f":
            raise UserError(
                f"{self._file}: predict_proba returned {probs.dtype} {probs.shape}; allowed: floating-point "
                f"numbers {shape}, one row per sample and one column per class"
            )
        sums = probs.sum(axis=1, dtype=np.float64)
        if not (np.all(probs >= 0) and np.all(np.abs(sums - 1) <= ROW_SUM_TOLERANCE)):
            raise UserError(
                f"{self._file}: predict_proba returned values from {probs.min():g} to {probs.max():g} and "
                f"rows that sum to {sums.min():g} to {sums.max():g}; allowed: probabilities, rows that "
                f"sum to 1"
            )

    @property
    def _file(self) -> str:
        return extension_file("calibrators", self.name)


@functools.cache
def _class_of(name: str) -> type[OwnCalibrator]:
    return type(
        name, (OwnCalibrator,), {"name": name, "__module__": __name__, "__doc__": OwnCalibrator.__doc__}
    )


__getattr__ = extension_attributes("calibrators", _class_of)


def _restored(value: Any) -> Any:
    """Return a parameter as `fit` may have set it: a number, or an array."""
    return np.asarray(value) if isinstance(value, list) else value


def _read_only(array: NDArray) -> NDArray:
    """Return a view that the user's code cannot write to: other calibrators share the array."""
    view = array.view()
    view.flags.writeable = False
    return view
