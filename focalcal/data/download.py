"""Download of one file over HTTP: resumed, retried, abandoned if too slow, verified before it is renamed."""

import http.client
import io
import logging
import os
import socket
import ssl
import stat
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, replace
from functools import partial as with_arguments
from pathlib import Path
from typing import IO, Any

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
_LEAST_RATE = 1000.0
_LARGEST_HEAD = 1 << 20
"""Bytes that all headers and redirects together may have."""


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
    longest_head: float = 60.0
    """Seconds that all headers and redirects together may take."""
    attempts: int = 4
    """Consecutive attempts without new bytes before a source is abandoned."""
    first_pause: float = 1.0
    """Seconds before the first retry; doubled for each further one."""
    longest_pause: float = 30.0
    slowest_rate: float = 200e3
    """Bytes per second below which other sources are tried first."""
    slow_after: float = 20.0
    """Seconds before the rate is checked."""

    def patient(self) -> "DownloadPolicy":
        """Return this policy for a source without alternatives: only one that hardly sends is abandoned."""
        return replace(self, slowest_rate=min(self.slowest_rate, _LEAST_RATE))


class _TemporaryError(SourceError):
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
    if os.path.lexists(partial):
        with _own_file(partial, os.O_RDONLY, "rb"):
            pass
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
    with _open(url, offset, partial, policy) as response:
        offset, total = _plan(response, offset, expected)
        limit = total if total is not None else _LARGEST_UNKNOWN_BYTES
        started, position = time.monotonic(), offset
        flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if offset else os.O_TRUNC)
        with (
            _own_file(partial, flags, "ab" if offset else "wb") as file,
            transfer_progress(expected.name, offset, total) as show,
        ):
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


def _own_file(path: Path, flags: int, mode: str) -> IO[bytes]:
    """Return an open file; raise SourceError for what another user of a shared cache may have planted.

    Through a link, bytes would go to, or come from, a file elsewhere.
    """
    refused = f"{path} is a link or another user's file; delete it, or choose another cache"
    # What is truncated is looked at first.
    first = flags & ~os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, first, 0o666)
    except OSError as error:
        raise SourceError(f"{refused} ({error.strerror})") from None
    file = os.fdopen(descriptor, mode)
    status = os.fstat(descriptor)
    own = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    if not (stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and own):
        file.close()
        raise SourceError(refused)
    if flags & os.O_TRUNC:
        file.truncate(0)
    return file


class _Head:
    """What a server may send, and how long it may take, before the content: one limit for all redirects."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds
        self.bytes = _LARGEST_HEAD
        self.over = False


class _BoundedInput(io.RawIOBase):
    """The bytes of a connection, of which the head is bounded."""

    def __init__(self, raw: io.RawIOBase, connection: socket.socket, head: _Head) -> None:
        self._raw, self._socket, self._head = raw, connection, head
        self._timeout = connection.gettimeout()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._head.over:
            return self._raw.readinto(buffer)
        left = self._head.end - time.monotonic()
        if left <= 0 or self._head.bytes <= 0:
            raise TimeoutError
        self._socket.settimeout(left if self._timeout is None else min(left, self._timeout))
        count = self._raw.readinto(buffer)
        self._socket.settimeout(self._timeout)
        self._head.bytes -= count or 0
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """A response with a bounded head."""

    def __init__(self, head: _Head, sock: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self.fp = io.BufferedReader(_BoundedInput(self.fp.detach(), sock, head))


class _Bounded(urllib.request.AbstractHTTPHandler):
    """Opens connections whose responses have a bounded head."""

    def __init__(self, head: _Head) -> None:
        super().__init__()
        self.head = head

    def do_open(self, http_class: Any, req: urllib.request.Request, **options: Any) -> Any:
        def connection(*places: Any, **more: Any) -> http.client.HTTPConnection:
            made = http_class(*places, **more)
            made.response_class = with_arguments(_Response, self.head)
            return made

        return super().do_open(connection, req, **options)


class _BoundedHttp(_Bounded, urllib.request.HTTPHandler):
    pass


class _BoundedHttps(_Bounded, urllib.request.HTTPSHandler):
    pass


class _HttpRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http addresses only; urllib would follow one to ftp, too."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        _check_scheme(newurl)
        fp.close()  # urllib would read the content, whatever its length
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _check_scheme(url: str) -> None:
    if not url.startswith(("http://", "https://")):
        raise SourceError(f"not an http address: {url}")


def _open(url: str, offset: int, partial: Path, policy: DownloadPolicy) -> http.client.HTTPResponse:
    """Return the response from byte `offset` on; delete `partial` if the server cannot resume."""
    _check_scheme(url)
    # Compression would change the meaning of sizes and byte ranges.
    headers = {"User-Agent": "focalcal", "Accept-Encoding": "identity"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
    request = urllib.request.Request(url, headers=headers)  # noqa: S310  the scheme was checked above
    head = _Head(policy.longest_head)
    opener = urllib.request.build_opener(_HttpRedirects, _BoundedHttp(head), _BoundedHttps(head))
    try:
        response = opener.open(request, timeout=policy.timeout)
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
    head.over = True
    return response


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
