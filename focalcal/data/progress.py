"""Progress of a long step: a bar on a terminal, an occasional plain line in a log."""

import contextlib
import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from tqdm import tqdm

PLUMBING = True
_LOG = logging.getLogger(__name__)
_SECONDS_BETWEEN_LINES = 15.0
_Item = TypeVar("_Item")


def followed(items: Sequence[_Item], label: str) -> Iterator[_Item]:
    """Yield the items and show how many are done."""
    log = _sparse_log()
    for count, item in enumerate(tqdm(items, desc=label, disable=not sys.stderr.isatty(), leave=False)):
        log("%s: %d of %d", label, count, len(items))
        yield item


@contextlib.contextmanager
def transfer_progress(label: str, done: int, total: int | None) -> Iterator[Callable[[int], None]]:
    """Yield a function that takes each number of further bytes of one file and shows how many are there."""
    log = _sparse_log()
    share = f" of {total / 1e6:.1f}" if total else ""
    with tqdm(
        desc=label,
        initial=done,
        total=total,
        unit="B",
        unit_scale=True,
        disable=not sys.stderr.isatty(),
        leave=False,
    ) as bar:

        def show(count: int) -> None:
            nonlocal done
            done += count
            bar.update(count)
            log("%s: %.1f%s MB", label, done / 1e6, share)

        yield show


def _sparse_log() -> Callable[..., None]:
    """Return a function that logs what it is given unless it did so recently, and nothing on a terminal."""
    last_line = time.monotonic()

    def log(*message: Any) -> None:
        nonlocal last_line
        now = time.monotonic()
        if not sys.stderr.isatty() and now - last_line >= _SECONDS_BETWEEN_LINES:
            last_line = now
            _LOG.info(*message)

    return log
