"""Logits of models trained elsewhere, from the file formats people keep them in."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from focalcal.calibration import logits_io
from focalcal.calibration.logits_io import RunLogits


@dataclass(frozen=True)
class Imported:
    """Logits read from a user's file."""

    logits: RunLogits
    checksum: str
    """SHA-256 of the file."""
    warnings: tuple[str, ...] = ()
    """What the user should know about the file, one sentence each."""


def read(path: Path, kind: str) -> Imported:
    """Return the checked logits of `path`; a UserError names what is wrong and the repair."""
    logits = logits_io.load(path)
    return Imported(logits, hashlib.sha256(path.read_bytes()).hexdigest())


def record(spec: Mapping[str, Any], imported: Imported, origin: Mapping[str, Any]) -> dict[str, Any]:
    """Return the run's record: what was imported, how it was declared, and from which code."""
    samples, classes = imported.logits.val.logits.shape
    return {
        "status": "ok",
        "spec": dict(spec),
        "seed": spec["seed"],
        "data_checksum": imported.checksum,
        "device": None,
        "wall_seconds": None,
        "classes": classes,
        "sizes": {"val": samples, "test": len(imported.logits.test.labels)},
        "warnings": list(imported.warnings),
        "provenance": dict(origin),
    }
