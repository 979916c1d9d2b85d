"""Put into a copy of the project: lets a test count a training's batches, and hold it as long as it likes."""

import time
from collections.abc import Callable
from pathlib import Path


def brake(seed: int, should_stop: Callable[[], bool]) -> None:
    """Note one batch; wait while the run's `hold` file is there, unless training is asked to stop."""
    with Path(f"batches-{seed}").open("a", encoding="utf-8") as notes:
        notes.write(".")
    while Path(f"hold-{seed}").exists() and not should_stop():
        time.sleep(0.1)
