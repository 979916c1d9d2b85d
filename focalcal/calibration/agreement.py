"""Whether labels belong to a model's predictions, and whether test samples are new."""

import math
from typing import Any

import numpy as np

from focalcal.calibration.files.logits_io import Split
from focalcal.theory.psi import log_psi

LOWEST_LOG = -100.0
"""Log-probabilities below this count as this, so that a few certain mistakes do not hide all else."""
SURE = 3.0
"""Standard errors from which a difference counts as shown."""


def agreement(split: Split) -> dict[str, Any]:
    """Return how a model's predictions and the labels go together, JSON-ready.

    `accuracy`; `z`, by how many standard errors the log-probability of a sample's label exceeds what it would
    be if labels were drawn independently of the predictions, with their frequencies; and `shift`, 1 or -1 if
    the labels agree with clearly more predictions once it is added to them (`shifted_accuracy`), else 0.
    """
    logs = np.maximum(log_psi(split.logits, 0.0), LOWEST_LOG)
    samples, classes = logs.shape
    shares = np.bincount(split.labels, minlength=classes) / samples
    leads = logs[np.arange(samples), split.labels] - logs @ shares
    error = float(leads.std(ddof=1)) / math.sqrt(samples)
    predicted = split.logits.argmax(axis=1)
    accuracies = {
        shift: float(np.mean((split.labels + shift) % classes == predicted)) for shift in (0, 1, -1)
    }
    second, best = sorted(accuracies, key=lambda shift: accuracies[shift])[1:]
    clear = accuracies[best] - accuracies[second] > SURE / math.sqrt(2 * samples)
    return {
        "accuracy": accuracies[0],
        "z": float(leads.mean()) / error if error > 0 else 0.0,
        "shift": best if clear else 0,
        "shifted_accuracy": accuracies[best],
    }


def repeated_samples(val: Split, test: Split) -> int:
    """Return how many test samples have the logits and the label of a validation sample.

    Logits that several samples of one split share, as those of certain predictions, do not count.
    """
    seen, tested = (_unique_rows(split) for split in (val, test))
    return len(seen & tested)


def _unique_rows(split: Split) -> set[bytes]:
    """Return the samples whose logits and label no other of the split has, as bytes."""
    rows = np.column_stack([split.logits.astype(np.float64), split.labels])
    once: set[bytes] = set()
    again: set[bytes] = set()
    for row in rows:
        content = row.tobytes()
        (again if content in once else once).add(content)
    return once - again
