"""Download of one file over HTTP: resumed, retried, abandoned if too slow, verified before it is renamed."""

import http.client
import logging
import os
import socket
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from focalcal.common.checksums import checksum
from focalcal.data.errors import SourceError, TooSlowError
from focalcal.data.progress import transfer_progress

PLUMBING = True
PARTIAL_SUFFIX = ".partial"
_LOG = logging.getLogger(__name__)
_CHUNK_BYTES = 1 << 18
_TEMPORARY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
_RANGE_NOT_SATISFIABLE = 416
_PARTIAL_CONTENT = 206
# Limit for files of unknown size, so that an endless response cannot fill the disk.
_LARGEST_UNKNOWN_BYTES = 1 << 30


@dataclass(frozen=True)
class ExpectedFile:
    """The name of a file and, if known, its size in bytes and checksum ("sha256:HEX")."""

    name: str
    size: int | None = None
    checksum: str | None = None


@dataclass(frozen=True)
class DownloadPolicy:
    """Timeouts, retries and the lowest acceptable speed of a download."""

    timeout: float = 30.0
    """Seconds without a byte before a connection counts as broken."""
    attempts: int = 4
    """Consecutive attempts without new bytes before a source is abandoned."""
    first_pause: float = 1.0
    """Seconds before the first retry; doubled for each further one."""
    longest_pause: float = 30.0
    slowest_rate: float = 200e3
    """Bytes per second below which other sources are tried first; 0 accepts any speed."""
    slow_after: float = 20.0
    """Seconds before the rate is checked."""


class _TemporaryError(Exception):
    """A failure that another attempt may overcome."""


def problem_with(path: Path, expected: ExpectedFile) -> str | None:
    """Return what is wrong with the file at `path`, or None if it is the expected one."""
    size = path.stat().st_size
    if expected.size is not None and size != expected.size:
        return f"{expected.name} has {size} bytes instead of {expected.size}"
    if expected.checksum is not None:
        algorithm, _, digest = expected.checksum.partition(":")
        actual = checksum(path, algorithm)
        if actual != digest:
            return f"{expected.name} has {algorithm} {actual} instead of {digest}"
    return None


def download(url: str, target: Path, expected: ExpectedFile, policy: DownloadPolicy) -> None:
    """Download `url` to `target`, or raise a SourceError that says why this source cannot serve it.

    Bytes are collected in `target` + ".partial", which survives a kill and is resumed by the next call, even
    from another mirror. Only a file with the right checksum is renamed to `target`. A source slower than the
    policy allows raises TooSlowError and leaves its partial file.
    """
    partial = target.with_name(target.name + PARTIAL_SUFFIX)
    resumed = _collect(url, partial, expected, policy)
    problem = problem_with(partial, expected)
    if problem is not None and resumed:
        _LOG.warning("%s: %s after a resumed download; deleted, starting over", url, problem)
        partial.unlink()
        _collect(url, partial, expected, policy)
        problem = problem_with(partial, expected)
    if problem is not None:
        partial.unlink()
        raise SourceError(f"{problem} (deleted)")
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    partial.replace(target)


def _collect(url: str, partial: Path, expected: ExpectedFile, policy: DownloadPolicy) -> bool:
    """Complete `partial` over as many connections as needed; return whether any was a resumption."""
    failures = 0
    resumed = False
    furthest = _bytes_on_disk(partial)
    while expected.size is None or _bytes_on_disk(partial) < expected.size:
        resumed = resumed or _bytes_on_disk(partial) > 0
        try:
            _transfer(url, partial, expected, policy)
        except _TemporaryError as error:
            # Only bytes beyond the furthest seen count as progress: a server may restart for ever.
            failures = 0 if _bytes_on_disk(partial) > furthest else failures + 1
            furthest = max(furthest, _bytes_on_disk(partial))
            if failures >= policy.attempts:
                raise SourceError(f"{error} ({failures} attempts)") from None
            pause = min(policy.first_pause * 2 ** max(failures - 1, 0), policy.longest_pause)
            _LOG.info("%s: %s; retrying in %.1f s", url, error, pause)
            time.sleep(pause)
        else:
            return resumed
    return True


def _transfer(url: str, partial: Path, expected: ExpectedFile, policy: DownloadPolicy) -> None:
    """Append the bytes of one connection to `partial`; raise _TemporaryError if it is incomplete."""
    offset = _bytes_on_disk(partial)
    with _open(url, offset, partial, policy.timeout) as response:
        offset, total = _plan(response, offset, expected)
        limit = total if total is not None else _LARGEST_UNKNOWN_BYTES
        started, position = time.monotonic(), offset
        mode = "ab" if offset else "wb"
        with partial.open(mode) as file, transfer_progress(expected.name, offset, total) as show:
            while chunk := _read_chunk(response):
                file.write(chunk)
                position += len(chunk)
                show(len(chunk))
                if position > limit:
                    raise SourceError(f"the server sends more than {limit} bytes")
                elapsed, count = time.monotonic() - started, position - offset
                if elapsed > policy.slow_after and count < policy.slowest_rate * elapsed:
                    raise TooSlowError(f"only {count / elapsed / 1e3:.0f} kB/s; trying other sources first")
    if total is not None and position < total:
        raise _TemporaryError(f"the connection closed after {position} of {total} bytes")


class _HttpRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http addresses only; urllib would follow one to ftp, too."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        _check_scheme(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _check_scheme(url: str) -> None:
    if not url.startswith(("http://", "https://")):
        raise SourceError(f"not an http address: {url}")


def _open(url: str, offset: int, partial: Path, timeout: float) -> http.client.HTTPResponse:
    """Return the response from byte `offset` on; delete `partial` if the server cannot resume."""
    _check_scheme(url)
    # Compression would change the meaning of sizes and byte ranges.
    headers = {"User-Agent": "focalcal", "Accept-Encoding": "identity"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
    request = urllib.request.Request(url, headers=headers)  # noqa: S310  the scheme was checked above
    try:
        return urllib.request.build_opener(_HttpRedirects).open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == _RANGE_NOT_SATISFIABLE:
            partial.unlink(missing_ok=True)
            raise _TemporaryError("the server cannot resume; starting over") from None
        kind = _TemporaryError if error.code in _TEMPORARY_STATUS else SourceError
        raise kind(f"HTTP {error.code} {error.reason}") from None
    except (OSError, http.client.HTTPException) as error:
        raise _connection_error(error) from None
    except ValueError as error:
        raise SourceError(f"redirected to an address that cannot be read: {error}") from None


def _plan(response: http.client.HTTPResponse, offset: int, expected: ExpectedFile) -> tuple[int, int | None]:
    """Return the first byte of the response and the expected total size, or None if unknown."""
    if response.status != _PARTIAL_CONTENT:
        offset = 0
    elif not response.headers.get("Content-Range", "").startswith(f"bytes {offset}-"):
        raise SourceError("the server returned a different range than requested")
    offered = None if response.length is None else offset + response.length
    if None not in (offered, expected.size) and offered != expected.size:
        raise SourceError(f"the server offers {offered} bytes instead of {expected.size}")
    return offset, expected.size if offered is None else offered


def _read_chunk(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read1(_CHUNK_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise _connection_error(error) from None


def _connection_error(error: Exception) -> Exception:
    """Return a SourceError if another attempt cannot help, else a _TemporaryError."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, socket.gaierror):
        return SourceError("the host name cannot be resolved")
    if isinstance(reason, ConnectionRefusedError | ssl.SSLCertVerificationError):
        return SourceError(str(reason))
    if isinstance(reason, TimeoutError):
        return _TemporaryError("timed out")
    return _TemporaryError(f"connection lost: {reason}")


def _bytes_on_disk(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
