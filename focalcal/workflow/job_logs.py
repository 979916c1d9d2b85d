"""What the log of a job says last: how far it is, or why it failed."""

import re
from pathlib import Path

TAIL_BYTES = 4096
"""As much of the end of a log as is read: more than the longest line that matters."""


def last_line(log: Path) -> str:
    """Return the last line of a log without its time stamp; "" if there is none yet."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL_BYTES))
            lines = file.read().decode("utf-8", errors="replace").split("\n")
    except OSError:
        return ""
    text = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return re.sub(r"^\d\d:\d\d:\d\d ", "", text)
