"""Progress of a training run: a bar on a terminal, occasional plain lines with the time left in a log."""

import logging
import sys
import time
from datetime import timedelta
from typing import Any

from tqdm import tqdm

LOGGER = logging.getLogger(__name__)
LINE_SECONDS = 1.0
"""Epochs shorter than this share a line, so that a log of many short epochs stays readable."""


class EpochProgress:
    """Called with each history row and the number of epochs."""

    def __init__(self, label: str, first_epoch: int = 0) -> None:
        self.label, self.first_epoch = label, first_epoch
        self.started = time.monotonic()
        self.last_line = -LINE_SECONDS
        self.bar: tqdm | None = None

    def __call__(self, row: dict[str, Any], epochs: int) -> None:
        """Show that the epoch of `row` is done."""
        text = _summary(row)
        if sys.stderr.isatty():
            self.bar = self.bar or tqdm(total=epochs, initial=self.first_epoch, desc=self.label, unit="epoch")
            self.bar.update()
            self.bar.set_postfix_str(text)
            if row["epoch"] == epochs:
                self.bar.close()
            return
        elapsed = time.monotonic() - self.started
        if elapsed - self.last_line < LINE_SECONDS and row["epoch"] != epochs:
            return
        self.last_line = elapsed
        seconds_left = round(elapsed / (row["epoch"] - self.first_epoch) * (epochs - row["epoch"]))
        time_left = timedelta(seconds=seconds_left)
        LOGGER.info("%s epoch %d/%d %s, %s left", self.label, row["epoch"], epochs, text, time_left)


def _summary(row: dict[str, Any]) -> str:
    shown = ("train_loss", "train_error", "val_nll", "val_error", "val_ece")
    parts = [f"{name} {row[name]:.4f}" for name in shown if row.get(name) is not None]
    return ", ".join([*parts, f"lr {row['learning_rate']:.3g}", f"{row['images_per_second']:.0f} images/s"])
