"""Checksums of products: a step reads only what the step before it wrote.

The folder `results/checksums` mirrors the products. The products of one run's folder share a record: that of
`results/runs/x/seed1/logits.npz` is in `results/checksums/runs/x/seed1.json`. Any other product has its own:
that of `results/tables/runs.csv` is `results/checksums/tables/runs.csv.json`. A record has, for each file,
its SHA-256, the step that wrote it, and the SHA-256 of each product that the step had read. Only jobs write
records; whoever reads a product that has one checks it. A file without a record, such as one made by hand, is
read as it is.
"""

import contextlib
import errno
import functools
import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from focalcal.common.errors import UserError

PLUMBING = True
RESULTS = "results"
FOLDER = "checksums"
WITHOUT_RECORDS = (FOLDER, "benchmarks", "checkpoints")
"""Folders of files that are not products: no number depends on them, or they have their own checksum."""
RUN_FOLDER = re.compile(r"seed\d+")
"""The name of a folder that belongs to one run; its jobs run one after another."""
REPAIR = "start the same command again"
_MISSING = "is missing; `snakemake --cores all` with its name makes it again"
_WITHOUT_RECORD = f"has no record of the step that wrote it; delete it and {REPAIR}"


class Record(NamedTuple):
    """The step that wrote a product, the product's SHA-256, and those of the products it was made from."""

    step: str
    sha256: str
    read: dict[str, str]


class _Place(NamedTuple):
    """Where the record of a product is: in which file, whose it is (`results/...`), under which name."""

    file: Path
    owner: str
    name: str


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
    place = _place(path)
    if place is None or not _jobs:
        return None
    record = Record(_jobs[-1].step, checksum(written), dict(_jobs[-1].read))
    records = _records(place) | {place.name: record}
    files = {name: records[name]._asdict() for name in sorted(records)}
    return place.file, {"path": place.owner, "files": files}


def read_record(path: str | os.PathLike[str]) -> Record | None:
    """Return the record of a product, None if it has none; raise a UserError if the record is damaged."""
    place = _place(path)
    return None if place is None else _records(place).get(place.name)


def check(path: str | os.PathLike[str]) -> None:
    """Raise a UserError if a product differs from its record; note in a job that it was read."""
    record = read_record(path)
    if record is None or not os.path.lexists(path):
        return
    if fault := _fault(path, record):
        raise UserError(f"{os.fspath(path)} {fault}; delete it and {REPAIR}")
    if _jobs:
        _jobs[-1].read[Path(os.path.relpath(path)).as_posix()] = record.sha256


def outdated(products: Iterable[Path]) -> list[str]:
    """Return a line for each product that was built from an outdated input.

    All that these products were made from is looked at too. No product is read, only records.
    """
    return _outdated(_with_all_behind(products))


def _with_all_behind(products: Iterable[Path]) -> dict[Path, Record | None]:
    """Return the records of products and of all that these were made from."""
    records: dict[Path, Record | None] = {}
    waiting = list(products)
    while waiting:
        path = waiting.pop()
        if path not in records:
            records[path] = record = read_record(path)
            waiting += map(Path, record.read if record else ())
    return records


def _outdated(records: Mapping[Path, Record | None]) -> list[str]:
    return sorted(
        f"{path} was made from another {name} (checksum); delete it and {REPAIR}"
        for path, record in records.items()
        for name, sha256 in (record.read.items() if record else ())
        if (now := records[Path(name)]) is not None and now.sha256 != sha256
    )


def faults_behind(products: Iterable[Path], seconds: float) -> tuple[int, int, list[str]]:
    """Return how many files products and all that they were made from are, how many were read, and faults.

    Every file is looked for, except a product that was never made. As many are read as these seconds allow,
    those first that were changed after their record, then the smallest. A fault is one line.
    """
    end = time.monotonic() + seconds
    products = list(products)
    try:
        behind = _with_all_behind(products)
    except UserError as error:
        return 0, 0, [str(error)]
    present = {path for path in behind if os.path.lexists(path)}
    never_made = {path for path in products if behind[path] is None} - present
    records = {path: record for path, record in behind.items() if path not in never_made}
    faults = [f"{path} {_MISSING}" for path in records.keys() - present]
    recorded = {path: record for path, record in records.items() if record and path in present}
    faults += [f"{path} {_WITHOUT_RECORD}" for path in present - recorded.keys()]
    read = 0
    for path in sorted(recorded, key=_urgency):
        if time.monotonic() > end:
            break
        read += 1
        if fault := _fault(path, recorded[path]):
            faults.append(f"{path} {fault}; delete it and {REPAIR}")
    return len(records), read, [*sorted(faults), *_outdated(behind)]


def _urgency(path: Path) -> tuple[bool, int]:
    """Return what sorts files with a record by how soon they should be read."""
    status, place = path.lstat(), _place(path)
    recorded = place.file.stat().st_mtime_ns if place else 0
    return status.st_mtime_ns <= recorded, status.st_size


def products(results: Path) -> list[Path]:
    """Return the files of a results folder that should have a record, sorted."""
    return [path for path in sorted(results.rglob("*")) if path.is_file() and _is_product(path, results)]


def verify(results: Path) -> tuple[int, list[str]]:
    """Return the number of products in a results folder, and a line for each fault.

    A product may be damaged, missing, unknown or outdated.
    """
    found = products(results)
    faults, sound = [], []
    for path in found:
        try:
            check(path)
            if read_record(path) is None:
                faults.append(f"{path} {_WITHOUT_RECORD}")
            else:
                sound.append(path)
        except UserError as error:
            faults.append(str(error))
    for file in sorted((results / FOLDER).rglob("*.json")):
        below = file.relative_to(results / FOLDER).with_suffix("")
        folder = results / (below if RUN_FOLDER.fullmatch(below.name) else below.parent)
        try:
            names = _records(_Place(file, f"{RESULTS}/{below.as_posix()}", ""))
        except UserError as error:
            faults.append(str(error))
            continue
        missing = [folder / name for name in names if not (folder / name).is_file()]
        faults += [f"{path} {_MISSING}" for path in missing]
    return len(found), [*sorted(set(faults)), *outdated(sound)]


def checksum(path: str | os.PathLike[str], algorithm: str = "sha256") -> str:
    """Return the hexadecimal digest of the file at `path`."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


def _fault(path: str | os.PathLike[str], record: Record) -> str | None:
    """Return what is wrong with a product that exists, None if it is what its record says."""
    try:
        same = _sha256(path) == record.sha256
    except OSError as error:
        return f"cannot be read ({error.strerror}), but `{record.step}` wrote a file"
    return None if same else f"is not what `{record.step}` wrote (checksum)"


def _records(place: _Place) -> dict[str, Record]:
    """Return the records in one file by product; raise a UserError if it is damaged or of something else."""
    if not place.file.is_file():
        return {}
    try:
        content = json.loads(place.file.read_bytes())
        owner = content["path"]
        found = {
            name: Record(entry["step"], entry["sha256"], dict(entry["read"]))
            for name, entry in content["files"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{place.file} is damaged; delete it and {place.owner}, and {REPAIR}") from None
    if owner != place.owner:
        raise UserError(
            f"{place.file} is the record of {owner}, not of {place.owner}; delete it and {place.owner}, and "
            f"{REPAIR}"
        )
    return found


def _place(path: str | os.PathLike[str]) -> _Place | None:
    """Return where the record of a product is; None for other files."""
    parts = Path(os.path.relpath(path)).parts
    if RESULTS not in parts[:-1]:
        return None
    # Seen from the working directory, the first such folder is the one that rules write to.
    start = parts.index(RESULTS) + 1
    results, below = Path(*parts[:start]), Path(*parts[start:])
    if below.parts[0] in WITHOUT_RECORDS:
        return None
    shared = below.parent if RUN_FOLDER.fullmatch(below.parent.name) else below
    return _Place(results / FOLDER / f"{shared}.json", f"{RESULTS}/{shared.as_posix()}", below.name)


def _is_product(path: Path, results: Path) -> bool:
    """Return whether a file of the results folder should have a record."""
    parts = path.relative_to(results).parts
    hidden = any(part.startswith(".") for part in parts)
    return not hidden and parts[0] not in (*WITHOUT_RECORDS, "README.md")


def _sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file, computed once per process unless the file changes."""
    status = Path(path).stat()
    if not stat.S_ISREG(status.st_mode):  # reading a pipe or a device might never end
        raise OSError(errno.EINVAL, "not a file")
    return _sha256_of_version(Path(path).absolute(), status.st_ino, status.st_size, status.st_mtime_ns)


@functools.cache
def _sha256_of_version(path: Path, *_version: int) -> str:
    return checksum(path)
