"""Safe reading of archives: plain files only, no path outside the target folder, limited size."""

import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import IO

from focalcal.data.errors import ArchiveError

_CHUNK_BYTES = 1 << 20
_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, gzip.BadGzipFile, EOFError, NotImplementedError)


def extract(
    archive: Path,
    folder: Path,
    wanted: Callable[[str], bool],
    *,
    largest: int = 4 << 30,
    most_members: int = 200_000,
) -> list[Path]:
    """Return the files extracted from the tar `archive` (any compression) into `folder`.

    Only members whose name satisfies `wanted` are written. Raise ArchiveError if any member, wanted or not,
    has an absolute path or a "..", or is neither a plain file nor a folder, if there are more than
    `most_members`, or if those written exceed `largest` bytes.
    """
    written: list[Path] = []
    try:
        with tarfile.open(archive, mode="r|*") as members:
            for count, member in enumerate(members, start=1):
                _check_member(archive, member)
                if count > most_members:
                    raise ArchiveError(f"{archive.name} holds more than {most_members} members")
                if member.isdir() or not wanted(member.name):
                    continue
                target = folder / PurePosixPath(member.name)
                if target.exists():
                    raise ArchiveError(f"{archive.name} holds {member.name!r} twice")
                target.parent.mkdir(parents=True, exist_ok=True)
                largest -= _copy(members.extractfile(member), target, largest, archive.name)
                written.append(target)
    except _DAMAGE as error:
        raise ArchiveError(f"{archive.name} is damaged: {error}") from None
    return written


def extract_zips(
    files: list[Path], folder: Path, sizes: Mapping[str, int | None], within: str | None = None
) -> None:
    """Write the members of zips whose file names are in `sizes` to `folder`, each at most so many bytes.

    `within` is the folder of an archive that they are in, if other folders have files of the same name.
    """
    for archive in files:
        try:
            with zipfile.ZipFile(archive) as members:
                for info in members.infolist():
                    parent, name = str(PurePosixPath(info.filename).parent), PurePosixPath(info.filename).name
                    if name in sizes and "__MACOSX" not in parent and within in {None, parent}:
                        largest = info.file_size if sizes[name] is None else sizes[name]
                        with members.open(info) as content:
                            _copy(content, folder / name, largest, archive.name)
        except _DAMAGE as error:
            raise ArchiveError(f"{archive.name} is damaged: {error}") from None


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


def _check_member(archive: Path, member: tarfile.TarInfo) -> None:
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or "\\" in member.name or "\0" in member.name:
        raise ArchiveError(f"{archive.name} holds the unsafe path {member.name!r}")
    # isreg() also accepts sparse files, which can declare any size at no cost.
    if member.type not in {tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE}:
        raise ArchiveError(
            f"{archive.name} holds {member.name!r}, which is a link or device, not a plain file"
        )


def _copy(content: IO[bytes] | gzip.GzipFile, target: Path, largest: int, name: str) -> int:
    """Write `content` to the new file `target` and return its size; the declared size is not trusted."""
    size = 0
    with target.open("xb") as file:
        while chunk := content.read(_CHUNK_BYTES):
            size += len(chunk)
            if size > largest:
                raise ArchiveError(f"{name} unpacks to more bytes than allowed")
            file.write(chunk)
    return size
