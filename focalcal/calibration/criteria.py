"""The criteria that searches minimise, directly from their definitions: the reference for the kernels."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from focalcal.calibration.catalogue import CRITERIA
from focalcal.calibration.metrics import Predictions, metric_value


def criterion_value(
    criterion: str | None, log_probs: NDArray[np.float64], labels: ArrayLike, bins: int, adaece: str
) -> float:
    """Return one of `CRITERIA` of log-probabilities (n, k) and labels (n,)."""
    predictions = Predictions.from_logs(log_probs, labels)
    if criterion not in CRITERIA:
        raise ValueError(f"criterion is {criterion!r}; expected one of {', '.join(CRITERIA)}")
    return metric_value(criterion, predictions, bins, adaece)


def focal_loss_of_logs(log_probs: NDArray[np.float64], labels: NDArray[np.int64], gamma: float) -> float:
    """Return the mean focal loss `-(1-p)^gamma log p` of the labels' probabilities p (C21 Eq. (5))."""
    log_true = log_probs[np.arange(len(labels)), labels]
    return float(np.mean(-((-np.expm1(log_true)) ** gamma) * log_true) + 0.0)
