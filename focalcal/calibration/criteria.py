"""The criteria that searches minimise, directly from their definitions: the reference for the kernels."""

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration import metrics
from focalcal.calibration.catalogue import CRITERIA


def criterion_value(
    criterion: str, log_probs: NDArray[np.float64], labels: NDArray[np.int64], bins: int, adaece: str
) -> float:
    """Return one of `CRITERIA` of log-probabilities (n, k) and labels (n,)."""
    if criterion not in CRITERIA:
        raise ValueError(f"criterion is {criterion!r}; expected one of {', '.join(CRITERIA)}")
    if criterion == "nll":
        return metrics.nll_of_logs(log_probs, labels)
    with np.errstate(under="ignore"):
        probs = np.exp(log_probs)
    if criterion == "ece":
        return metrics.ece(probs, labels, bins)
    return metrics.ece(probs, labels, bins, "mass", adaece)


def focal_loss_of_logs(log_probs: NDArray[np.float64], labels: NDArray[np.int64], gamma: float) -> float:
    """Return the mean focal loss `-(1-p)^gamma log p` of the labels' probabilities p (C21 Eq. (5))."""
    log_true = log_probs[np.arange(len(labels)), labels]
    return float(np.mean(-((-np.expm1(log_true)) ** gamma) * log_true) + 0.0)
