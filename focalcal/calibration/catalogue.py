"""The names of this stage: calibration methods, selection criteria, metrics. Standard library only.

To add a calibrator, write one class in `calibrators.py` (a subclass of `Calibrator`) and add one line to
`METHODS` here: its name in tables, the class, the criteria it is fitted by, whether it needs the gamma that
the model was trained with. Configuration checks, the calibration job, tables and figures take it from here.
"""

from dataclasses import dataclass

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


@dataclass(frozen=True)
class Method:
    """How one calibration method is made."""

    calibrator: str
    """Name of its class in `focalcal.calibration.calibrators`."""
    criteria: tuple[str, ...] | None
    """The criteria it is fitted by: None for each configured one, () where nothing is fitted."""
    needs_training_gamma: bool = False
    """Whether it applies only to models trained with focal loss of one known gamma."""


METHODS = {
    "none": Method("Uncalibrated", criteria=()),
    "ts": Method("TemperatureScaling", criteria=None),
    "fts": Method("FocalTemperatureScaling", criteria=None),
    "fts-line": Method("LineFocalTemperatureScaling", criteria=None),
    "fts-continuous": Method("ContinuousFocalTemperatureScaling", criteria=("nll",)),
    "psi": Method("Recovery", criteria=(), needs_training_gamma=True),
    "psi-ts": Method("RecoveryThenTemperature", criteria=None, needs_training_gamma=True),
    "ts-psi": Method("TemperatureThenRecovery", criteria=None, needs_training_gamma=True),
    "ts-focal": Method("FocalLossTemperature", criteria=("focal",), needs_training_gamma=True),
    "ts-focal-psi": Method(
        "FocalLossTemperatureThenRecovery", criteria=("focal",), needs_training_gamma=True
    ),
}
