"""Progress of a long step: a bar on a terminal, an occasional plain line in a log."""

import logging
import sys
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self, TypeVar

from tqdm import tqdm

_LOG = logging.getLogger(__name__)
_SECONDS_BETWEEN_LINES = 15.0
_Item = TypeVar("_Item")


def followed(items: Sequence[_Item], label: str) -> Iterator[_Item]:
    """Yield the items and show how many are done."""
    is_terminal = sys.stderr.isatty()
    last_line = time.monotonic()
    for count, item in enumerate(tqdm(items, desc=label, disable=not is_terminal, leave=False)):
        if not is_terminal and time.monotonic() - last_line >= _SECONDS_BETWEEN_LINES:
            last_line = time.monotonic()
            _LOG.info("%s: %d of %d", label, count, len(items))
        yield item


class TransferProgress:
    """Counts the bytes of one file; use as a context manager."""

    def __init__(self, label: str, done: int, total: int | None) -> None:
        self._label, self._done, self._total = label, done, total
        self._is_terminal = sys.stderr.isatty()
        self._last_line = time.monotonic()

    def __enter__(self) -> Self:
        self._bar = tqdm(
            desc=self._label,
            initial=self._done,
            total=self._total,
            unit="B",
            unit_scale=True,
            disable=not self._is_terminal,
            leave=False,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def add(self, count: int) -> None:
        """Record `count` more bytes."""
        self._done += count
        self._bar.update(count)
        now = time.monotonic()
        if not self._is_terminal and now - self._last_line >= _SECONDS_BETWEEN_LINES:
            self._last_line = now
            share = f" of {self._total / 1e6:.1f}" if self._total else ""
            _LOG.info("%s: %.1f%s MB", self._label, self._done / 1e6, share)
