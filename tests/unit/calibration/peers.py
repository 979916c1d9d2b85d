"""Calibrators of probmetrics, imported without the warning that it uses a deprecated part of torch."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from probmetrics.calibrators.logistic import (
        MatrixScalingCalibrator,
        SMSCalibrator,
        SVSCalibrator,
        VectorScalingCalibrator,
    )
    from probmetrics.calibrators.temperature_scaling import ETSCalibrator

__all__ = [
    "ETSCalibrator",
    "MatrixScalingCalibrator",
    "SMSCalibrator",
    "SVSCalibrator",
    "VectorScalingCalibrator",
]
