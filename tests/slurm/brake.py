"""Copied into a test project: lets a test count the batches of a training run and hold it."""

import time
from collections.abc import Callable
from pathlib import Path


def brake(seed: int, should_stop: Callable[[], bool]) -> None:
    """Record one batch; wait while the run's `hold` file exists, unless training is asked to stop."""
    with Path(f"batches-{seed}").open("a", encoding="utf-8") as notes:
        notes.write(".")
    while Path(f"hold-{seed}").exists() and not should_stop():
        time.sleep(0.1)
