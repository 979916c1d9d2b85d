"""Safe reading of archives: plain files only, no path outside the target folder, limited size."""

import contextlib
import gzip
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from focalcal.data.errors import ArchiveError

_CHUNK_BYTES = 1 << 20
_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, gzip.BadGzipFile, EOFError, NotImplementedError)


@dataclass(frozen=True)
class Limits:
    """Limits on the unpacked content of an archive."""

    total_bytes: int = 4 << 30
    members: int = 200_000


@dataclass(frozen=True)
class _Member:
    name: str
    size: int
    is_file: bool
    is_folder: bool
    open: Callable[[], IO[bytes]]


def extract(
    archive: Path,
    folder: Path,
    wanted: Callable[[str], bool] = lambda name: True,  # noqa: ARG005  the default wants every name
    limits: Limits = Limits(),  # noqa: B008  immutable
) -> list[Path]:
    """Return the files extracted from the tar (any compression) or zip `archive` into `folder`.

    Only members whose name satisfies `wanted` are written. Raise ArchiveError if any member, wanted or not,
    has an absolute path or a "..", or is neither a plain file nor a folder, or if `limits` are exceeded.
    """
    written: list[Path] = []
    remaining = limits.total_bytes
    try:
        with _members(archive) as members:
            for count, member in enumerate(members, start=1):
                _check_member(archive, member)
                if count > limits.members:
                    raise ArchiveError(f"{archive.name} holds more than {limits.members} members")
                if member.is_file and wanted(member.name):
                    target = folder / PurePosixPath(member.name)
                    remaining -= _write_member(archive, member, target, remaining)
                    written.append(target)
    except _DAMAGE as error:
        raise ArchiveError(f"{archive.name} is damaged: {error}") from None
    return written


def gunzip(source: Path, target: Path, largest: int) -> None:
    """Unpack the gzip file `source` to `target`; raise ArchiveError if it exceeds `largest` bytes."""
    try:
        with gzip.open(source) as packed:
            _copy(packed, target, largest, source.name)
    except _DAMAGE as error:
        raise ArchiveError(f"{source.name} is damaged: {error}") from None


def read_zip_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, largest: int) -> bytes:
    """Return the bytes of one zip member; raise ArchiveError if there are more than `largest`."""
    if info.file_size > largest:
        raise ArchiveError(f"{info.filename} unpacks to {info.file_size} bytes, more than {largest}")
    try:
        return archive.read(info)
    except _DAMAGE as error:
        raise ArchiveError(f"{info.filename} is damaged: {error}") from None


@contextlib.contextmanager
def _members(archive: Path) -> Iterator[Iterator[_Member]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as file:
            yield (_zip_member(file, info) for info in file.infolist())
    else:
        with tarfile.open(archive, mode="r|*") as file:
            yield (_tar_member(file, info) for info in file)


def _tar_member(file: tarfile.TarFile, info: tarfile.TarInfo) -> _Member:
    # isreg() also accepts sparse files, which can declare any size at no cost.
    is_file = info.type in {tarfile.REGTYPE, tarfile.AREGTYPE}
    return _Member(info.name, info.size, is_file, info.isdir(), lambda: file.extractfile(info))


def _zip_member(file: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Member:
    # The upper half of external_attr is the Unix mode, 0 in archives made on other systems.
    kind = stat.S_IFMT(info.external_attr >> 16)
    is_folder = info.is_dir()
    is_file = not is_folder and kind in {0, stat.S_IFREG}
    return _Member(info.filename, info.file_size, is_file, is_folder, lambda: file.open(info))


def _check_member(archive: Path, member: _Member) -> None:
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or "\\" in member.name or "\0" in member.name:
        raise ArchiveError(f"{archive.name} holds the unsafe path {member.name!r}")
    if not (member.is_file or member.is_folder):
        raise ArchiveError(
            f"{archive.name} holds {member.name!r}, which is a link or device, not a plain file"
        )


def _write_member(archive: Path, member: _Member, target: Path, remaining: int) -> int:
    """Write one member and return its size."""
    if member.size > remaining:
        raise ArchiveError(f"{archive.name} unpacks to more bytes than allowed")
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        raise ArchiveError(f"{archive.name} holds {member.name!r} twice")
    with member.open() as content:
        return _copy(content, target, remaining, archive.name)


def _copy(content: IO[bytes], target: Path, largest: int, name: str) -> int:
    """Write `content` to the new file `target` and return its size; the declared size is not trusted."""
    size = 0
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        while chunk := content.read(_CHUNK_BYTES):
            size += len(chunk)
            if size > largest:
                raise ArchiveError(f"{name} unpacks to more bytes than allowed")
            file.write(chunk)
    return size
