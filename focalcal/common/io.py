"""Atomic writes and checked reads: a reader sees a complete file, as it was written, or refuses it."""

import contextlib
import csv
import glob
import gzip
import json
import os
import platform
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from focalcal.common import checksums
from focalcal.common.errors import UserError

PLUMBING = True


@contextlib.contextmanager
def atomic_output(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`; it is renamed to `path` when the block ends without an error.

    The suffix is kept for libraries that choose the format by it. After an error or a kill, `path` is
    unchanged; what a killed process left is deleted by the next write. The products of a job get a record of
    their checksum.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    prefix, suffix = f".{path.stem}.{platform.node()}-", f".partial{path.suffix}"
    _delete_leftovers(path.parent, prefix, suffix)
    handle, name = tempfile.mkstemp(prefix=f"{prefix}{os.getpid()}-", suffix=suffix, dir=path.parent)
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        _make_durable(partial)
        # Before the product itself: after a kill between the two, an old product is refused.
        if record := checksums.new_record(path, partial):
            write_json(*record)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` to `path` atomically, as UTF-8 with Unix line endings."""
    with atomic_output(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write `value` to `path` atomically, as indented JSON that refuses NaN and infinities."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def check_readable(path: str | os.PathLike[str]) -> None:
    """Raise a UserError that names a path which is missing, a folder, a broken link, a pipe or unreadable."""
    path, repair = Path(path), "allowed: an existing file; correct the path"
    if path.is_symlink() and not path.exists():
        raise UserError(f"{path} is a link to {path.readlink()}, which does not exist; {repair}")
    if not path.exists():
        raise UserError(f"{path} does not exist; {repair}")
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "a pipe or a device"
        raise UserError(f"{path} is {kind}; allowed: a file; correct the path")
    if not os.access(path, os.R_OK):
        raise UserError(f"{path} cannot be read (permission denied); allowed: a readable file; chmod it")


def read_json(path: str | os.PathLike[str]) -> Any:
    """Return the content of a JSON file."""
    with refusing_damage(path):
        return json.loads(Path(path).read_text(encoding="utf-8"))


@contextlib.contextmanager
def refusing_damage(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise a UserError with the repair if a product differs from its record, or is cut, empty or garbled."""
    checksums.check(path)
    try:
        yield
    # Decoders, pandas and NumPy raise subclasses of ValueError; the others are those of CSV, gzip and zip.
    except (
        *(ValueError, KeyError, EOFError, RecursionError, csv.Error),
        *(gzip.BadGzipFile, zipfile.BadZipFile, zlib.error, IsADirectoryError, PermissionError),
    ) as error:
        said = getattr(error, "strerror", None) or str(error)
        reason = " ".join(said.split()) or type(error).__name__
        raise UserError(
            f"{os.fspath(path)} is damaged ({reason}); delete it and start the same command again"
        ) from None


def _delete_leftovers(folder: Path, prefix: str, suffix: str) -> None:
    """Delete temporary files of processes of this machine that no longer exist."""
    for leftover in folder.glob(f"{glob.escape(prefix)}*-*{glob.escape(suffix)}"):
        process = leftover.name.removeprefix(prefix).partition("-")[0]
        try:
            os.kill(int(process), 0)
        except ProcessLookupError:
            leftover.unlink(missing_ok=True)
        except (ValueError, OSError):  # not ours, or another user's that is alive
            continue


def _make_durable(partial: Path) -> None:
    """Flush the file to disk and give it the permissions an ordinary new file would have."""
    umask = os.umask(0)
    os.umask(umask)
    partial.chmod(0o666 & ~umask)
    descriptor = os.open(partial, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
