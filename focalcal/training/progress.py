"""Progress of a training run: occasional lines in its log, which the terminal shows while it runs."""

import logging
import time
from datetime import timedelta
from typing import Any

PLUMBING = True
LOGGER = logging.getLogger(__name__)
LINE_SECONDS = 1.0
"""Epochs shorter than this share a line, so that a log of many short epochs stays readable."""


class EpochProgress:
    """Called with each history row and the number of epochs."""

    def __init__(self, first_epoch: int = 0) -> None:
        self.first_epoch = first_epoch
        self.started = time.monotonic()
        self.last_line = -LINE_SECONDS

    def __call__(self, row: dict[str, Any], epochs: int) -> None:
        """Log that the epoch of `row` is done, with the time left."""
        elapsed = time.monotonic() - self.started
        if elapsed - self.last_line < LINE_SECONDS and row["epoch"] != epochs:
            return
        self.last_line = elapsed
        seconds_left = round(elapsed / (row["epoch"] - self.first_epoch) * (epochs - row["epoch"]))
        time_left = timedelta(seconds=seconds_left)
        LOGGER.info("epoch %d/%d, %s left, %s", row["epoch"], epochs, time_left, _summary(row))


def _summary(row: dict[str, Any]) -> str:
    """Return the scores of an epoch, what matters most first: a terminal may cut the line."""
    parts = [f"loss {row['train_loss']:.4f}"]
    if row.get("val_error") is not None:
        accuracy, error = 100 * (1 - row["val_error"]), 100 * row["val_ece"]
        parts.append(f"validation accuracy {accuracy:.2f} %, NLL {row['val_nll']:.4f}, ECE {error:.2f} %")
    parts.append(f"learning rate {row['learning_rate']:.3g}, {row['images_per_second']:.0f} samples/s")
    return ", ".join(parts)
