"""The names of this stage and its limits: methods, criteria, metrics, ranges. Standard library only.

To add a calibrator, write one class in `calibrators.py` (a subclass of `Calibrator`) and add one line to
`METHODS` here: its name in tables, the class, the criteria it is fitted by, whether it needs the gamma that
the model was trained with. Configuration checks, the calibration job, tables and figures take it from here.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from focalcal.common.errors import UserError

CRITERIA = ("nll", "ece", "adaece")
"""What a search minimises on validation data: log-loss, equal-width ECE, equal-mass ECE."""

METRICS = (
    "accuracy",
    "error",
    "nll",
    "brier",
    "ece",
    "adaece",
    "mce",
    "classwise_ece",
    "s99_share",
    "s99_accuracy",
)
"""What is reported of every fit, as fractions; s99_accuracy has no row where no sample is above 0.99."""

SMALLEST_GAMMA, LARGEST_GAMMA = -1.0, 100.0
"""Gammas for which the focal map is computed."""
SMALLEST_TEMPERATURE = 1e-4
"""Temperature below which logits are not divided."""
NARROWEST_RANGE = 1.2e-3
"""Ends of gamma or log T that are no further apart leave the continuous search no room for differences."""


@dataclass(frozen=True)
class Method:
    """How one calibration method is made."""

    calibrator: str
    """Name of its class in `focalcal.calibration.calibrators`."""
    criteria: tuple[str, ...] | None
    """The criteria it is fitted by: None for each configured one, () where nothing is fitted."""
    needs_training_gamma: bool = False
    """Whether it applies only to models trained with focal loss of one known gamma."""
    ends_apart: float | None = None
    """How far apart the ends of both grids must be at least, where it searches between them."""


METHODS = {
    "none": Method("Uncalibrated", criteria=()),
    "ts": Method("TemperatureScaling", criteria=None),
    "fts": Method("FocalTemperatureScaling", criteria=None),
    "fts-line": Method("LineFocalTemperatureScaling", criteria=None, ends_apart=0.0),
    "fts-continuous": Method(
        "ContinuousFocalTemperatureScaling", criteria=("nll",), ends_apart=NARROWEST_RANGE
    ),
    "psi": Method("Recovery", criteria=(), needs_training_gamma=True),
    "psi-ts": Method("RecoveryThenTemperature", criteria=None, needs_training_gamma=True),
    "ts-psi": Method("TemperatureThenRecovery", criteria=None, needs_training_gamma=True),
    "ts-focal": Method("FocalLossTemperature", criteria=("focal",), needs_training_gamma=True),
    "ts-focal-psi": Method(
        "FocalLossTemperatureThenRecovery", criteria=("focal",), needs_training_gamma=True
    ),
}


def check_ends(methods: Iterable[str], gammas: Sequence[float], temperatures: Sequence[float]) -> None:
    """Raise a UserError where a method searches between ends of the grids that are too close together."""
    logs = [math.log(temperature) for temperature in temperatures]
    for key, unit, values in (("gammas", "", gammas), ("temperatures", " of log T", logs)):
        width = max(values) - min(values)
        for name in methods:
            apart = METHODS[name].ends_apart
            if apart is not None and not width > apart:
                raise UserError(
                    f"config key 'calibration.{key}' has ends that are {width:g}{unit} apart, but method "
                    f"{name!r} searches between them; allowed: more than {apart:g}{unit}; add values or "
                    f"remove the method from 'calibration.methods'"
                )
