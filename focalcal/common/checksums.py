"""Checksums of products: a step reads only what the step before it wrote.

The folder `results/checksums` mirrors the products. The record of `results/runs/x/logits.npz` is
`results/checksums/runs/x/logits.npz.json`, with the SHA-256 of the file, the step that wrote it, and the
SHA-256 of each product that the step had read. Only jobs write records; whoever reads a product that has one
checks it. A file without a record, such as one made by hand, is read as it is.
"""

import contextlib
import functools
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from focalcal.common.errors import UserError

PLUMBING = True
RESULTS = "results"
FOLDER = "checksums"
WITHOUT_RECORDS = (FOLDER, "benchmarks", "checkpoints")
"""Folders of files that are not products: no number depends on them, or they have their own checksum."""
REPAIR = "start the same command again"


class Record(NamedTuple):
    """The step that wrote a product, the product's SHA-256, and those of the products it was made from."""

    step: str
    sha256: str
    read: dict[str, str]


@dataclass(frozen=True)
class _Job:
    step: str
    read: dict[str, str] = field(default_factory=dict)


_jobs: list[_Job] = []
"""What this process is doing, the innermost job last; empty where the library is used by hand."""


@contextlib.contextmanager
def recording(step: str) -> Iterator[None]:
    """Let each product written within have a record, which names `step` and the products read within."""
    _jobs.append(_Job(step))
    try:
        yield
    finally:
        _jobs.pop()


def new_record(path: str | os.PathLike[str], written: Path) -> tuple[Path, dict[str, Any]] | None:
    """Return the file and the content of a product's record; None outside of jobs and for other files.

    `written` has the content of the product and is about to be renamed to `path`.
    """
    location = _location(path)
    if location is None or not _jobs:
        return None
    file, name = location
    job = _jobs[-1]
    return file, {"path": name, "step": job.step, "sha256": checksum(written), "read": dict(job.read)}


def read_record(path: str | os.PathLike[str]) -> Record | None:
    """Return the record of a product, None if it has none; raise a UserError if the record is damaged."""
    location = _location(path)
    if location is None or not location[0].is_file():
        return None
    file, name = location
    try:
        content = json.loads(file.read_bytes())
        owner, record = content["path"], Record(content["step"], content["sha256"], dict(content["read"]))
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{file} is damaged; delete it and {os.fspath(path)}, and {REPAIR}") from None
    if owner != name:
        raise UserError(
            f"{file} is the record of {owner}, not of {os.fspath(path)}; delete both files and {REPAIR}"
        )
    return record


def check(path: str | os.PathLike[str]) -> None:
    """Raise a UserError if a product differs from its record; note in a job that it was read."""
    record = read_record(path)
    if record is None or not Path(path).is_file():
        return
    if _sha256(path) != record.sha256:
        raise UserError(
            f"{os.fspath(path)} is not what `{record.step}` wrote (checksum); delete it and {REPAIR}"
        )
    if _jobs:
        _jobs[-1].read[Path(os.path.relpath(path)).as_posix()] = record.sha256


def checksum(path: str | os.PathLike[str], algorithm: str = "sha256") -> str:
    """Return the hexadecimal digest of the file at `path`."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


def _location(path: str | os.PathLike[str]) -> tuple[Path, str] | None:
    """Return the file of a product's record and the product's name, `results/...`; None for other files."""
    parts = Path(os.path.relpath(path)).parts
    if RESULTS not in parts[:-1]:
        return None
    # Seen from the working directory, the first such folder is the one that rules write to.
    start = parts.index(RESULTS) + 1
    folder, below = Path(*parts[:start]), Path(*parts[start:])
    if below.parts[0] in WITHOUT_RECORDS:
        return None
    return folder / FOLDER / f"{below}.json", (RESULTS / below).as_posix()


def _sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file, computed once per process unless the file changes."""
    status = Path(path).stat()
    return _sha256_of_version(Path(path).absolute(), status.st_ino, status.st_size, status.st_mtime_ns)


@functools.cache
def _sha256_of_version(path: Path, *_version: int) -> str:
    return checksum(path)
