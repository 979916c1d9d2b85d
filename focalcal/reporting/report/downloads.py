"""Files that readers save from within the report."""

import base64
import gzip
from dataclasses import dataclass
from pathlib import Path

from focalcal.common.io import refusing_damage


@dataclass(frozen=True)
class Download:
    """A file inside the report: its name, and its content compressed by gzip in base 64."""

    name: str
    content: str


def packed(path: Path) -> Download:
    """Return a file as the report carries it; the same file gives the same text."""
    with refusing_damage(path):
        compressed = gzip.compress(path.read_bytes(), mtime=0)
    return Download(path.name, base64.b64encode(compressed).decode("ascii"))
