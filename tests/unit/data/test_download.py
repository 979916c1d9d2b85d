import contextlib
import errno
import logging
import os
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from focalcal.data import download as module
from focalcal.data.download import ExpectedFile, download
from focalcal.data.errors import SourceError
from tests.unit.data.conftest import file_entry

CONTENT = bytes(range(256)) * 400
EXPECTED = ExpectedFile(**file_entry("file.bin", CONTENT))


@pytest.fixture
def target(tmp_path):
    return tmp_path / "file.bin"


def partial_of(target):
    return target.with_name("file.bin.partial")


def assert_served(target):
    assert target.read_bytes() == CONTENT
    assert not partial_of(target).exists()


def test_truncated_connections_are_resumed_where_they_broke(server, quick, target):
    route = server.add("file.bin", CONTENT, break_after=30_000)
    download(server.base + "file.bin", target, EXPECTED, quick)
    assert_served(target)
    assert route.requests == [None, "bytes=30000-", "bytes=60000-", "bytes=90000-"]


def test_a_complete_partial_file_needs_no_server(quick, target):
    partial_of(target).write_bytes(CONTENT)
    download("http://127.0.0.1:1/file.bin", target, EXPECTED, quick)
    assert_served(target)


def test_a_server_without_ranges_starts_again(server, quick, target):
    partial_of(target).write_bytes(b"x" * 1000)
    server.add("file.bin", CONTENT, ranges=False)
    download(server.base + "file.bin", target, EXPECTED, quick)
    assert_served(target)


@pytest.mark.parametrize("length", [1000, len(CONTENT), len(CONTENT) + 5])
def test_a_wrong_partial_file_is_detected(server, quick, target, caplog, length):
    partial_of(target).write_bytes(b"x" * length)
    server.add("file.bin", CONTENT)
    with caplog.at_level(logging.WARNING):
        download(server.base + "file.bin", target, EXPECTED, quick)
    assert_served(target)
    assert "after a resumed download; deleted, starting over" in caplog.text


def test_a_wrong_file_is_deleted_and_reported(server, quick, target):
    route = server.add("file.bin", CONTENT[::-1])
    with pytest.raises(SourceError, match=r"file\.bin has sha256 \w{64} instead of \w{64} \(deleted\)"):
        download(server.base + "file.bin", target, EXPECTED, quick)
    assert list(target.parent.iterdir()) == []
    assert len(route.requests) == 1


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_missing_file_is_not_tried_twice(server, quick, target, status):
    route = server.add("file.bin", status=status)
    with pytest.raises(SourceError, match=f"HTTP {status}"):
        download(server.base + "file.bin", target, EXPECTED, quick)
    assert len(route.requests) == 1


def test_temporary_errors_are_tried_again(server, quick, target):
    route = server.add("file.bin", CONTENT, failures=2)
    download(server.base + "file.bin", target, EXPECTED, quick)
    assert_served(target)
    assert len(route.requests) == 3


def test_silence_times_out(server, quick, target):
    server.add("file.bin", CONTENT, stall=1.0)
    with pytest.raises(SourceError, match=r"timed out \(2 attempts\)"):
        download(server.base + "file.bin", target, EXPECTED, replace(quick, timeout=0.1, attempts=2))


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("ftp://127.0.0.1/file.bin", "not an http address: ftp://127.0.0.1/file.bin"),
        ("http://[::1/file.bin", "redirected to an address that cannot be read"),
        ("http://127.0.0.1:port/file.bin", "nonnumeric port"),
    ],
)
def test_a_redirect_to_an_address_that_cannot_serve_is_a_failure_of_its_source(
    server, quick, target, location, message
):
    server.add("file.bin", location=location)
    with pytest.raises(SourceError, match=message):
        download(server.base + "file.bin", target, EXPECTED, quick)


@pytest.mark.parametrize("break_after", [None, 40_000])
def test_chunked_transfers(server, quick, target, break_after):
    server.add("file.bin", CONTENT, chunked=True, break_after=break_after)
    download(server.base + "file.bin", target, EXPECTED, quick)
    assert_served(target)


def test_an_endless_file_of_unknown_size_is_stopped(server, quick, target, monkeypatch):
    monkeypatch.setattr(module, "_LARGEST_UNKNOWN_BYTES", 50_000)
    server.add("file.bin", CONTENT, chunked=True)
    with pytest.raises(SourceError, match="sends more than 50000 bytes"):
        download(server.base + "file.bin", target, ExpectedFile("file.bin"), quick)


def test_a_short_file_of_undeclared_length_ends(server, quick, target):
    server.add("file.bin", CONTENT[:5000], chunked=True)
    with pytest.raises(SourceError, match=r"attempts\)"):
        download(server.base + "file.bin", target, EXPECTED, quick)
    assert not target.exists()


@pytest.mark.parametrize(
    ("host", "message"),
    [("no-such-host.invalid", "the host name cannot be resolved"), ("127.0.0.1:1", "refused")],
)
def test_a_host_that_cannot_be_reached_is_not_tried_twice(quick, target, monkeypatch, host, message):
    monkeypatch.setattr(module.time, "sleep", lambda seconds: pytest.fail(f"slept {seconds} s"))
    with pytest.raises(SourceError, match=message):
        download(f"http://{host}/file.bin", target, EXPECTED, quick)


def test_a_full_disk_is_not_blamed_on_the_source(server, quick, target, monkeypatch):
    server.add("file.bin", CONTENT)

    def full_disk(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, "transfer_progress", full_disk)
    with pytest.raises(OSError, match="No space left"):
        download(server.base + "file.bin", target, EXPECTED, quick)


@contextlib.contextmanager
def talker(talk):
    """Serve one connection after another on 127.0.0.1 by `talk(connection)`; yield the address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, contextlib.suppress(OSError):
                        connection.recv(4096)
                        talk(connection)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


def drip(connection):
    for _ in range(600):
        connection.sendall(b"H")
        time.sleep(0.02)


def continue_for_ever(connection):
    while True:
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)


def long_redirect(connection):
    connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 99999999999\r\n\r\n")
    while True:
        connection.sendall(b"x" * 100_000)


def many_redirects(connection):
    time.sleep(0.1)
    place = time.monotonic_ns()
    connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: /%d\r\nContent-Length: 0\r\n\r\n" % place)


@pytest.mark.parametrize("talk", [drip, continue_for_ever, long_redirect, many_redirects])
def test_headers_and_redirects_are_bounded_in_time_and_size(quick, target, monkeypatch, talk):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    begin = time.monotonic()
    with talker(talk) as address, pytest.raises(SourceError, match=r"timed out|redirect"):
        download(address + "file.bin", target, EXPECTED, replace(quick, longest_head=0.3, attempts=1))
    assert time.monotonic() - begin < 5


def test_a_trickle_of_content_is_abandoned_by_the_most_patient(server, quick, target):
    server.add("file.bin", CONTENT, pause=0.2)
    patient = replace(quick, slow_after=0.1).patient()
    with pytest.raises(SourceError, match=r"only .* kB/s"):
        download(server.base + "file.bin", target, EXPECTED, replace(patient, slowest_rate=1e5))
    assert patient.slowest_rate == 1000


def test_what_a_server_says_cannot_command_a_terminal(quick, target, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")

    def talk(connection):
        connection.sendall(b"HTTP/1.1 404 \x1b]0;owned\x07\x1b[2J" + b"x" * 5000 + b"\r\n\r\n")

    with talker(talk) as address, pytest.raises(SourceError, match=r"HTTP 404 \?\]0;owned\?") as refused:
        download(address + "file.bin", target, EXPECTED, quick)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 600


def plant_link(partial, elsewhere):
    partial.symlink_to(elsewhere)


def plant_hard_link(partial, elsewhere):
    os.link(elsewhere, partial)


def plant_as_another_user(partial, _elsewhere):
    """Another user of the cache writes the beginning of a file; as root, really another one."""
    if os.geteuid() == 0:
        child = os.fork()
        if child == 0:
            os.chdir(partial.parent)  # the folders above are root's own
            os.setuid(12345)
            Path(partial.name).write_bytes(CONTENT[:100])
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    else:
        partial.write_bytes(CONTENT[:100])


@pytest.mark.parametrize("plant", [plant_link, plant_hard_link, plant_as_another_user])
def test_what_others_planted_in_a_shared_cache_is_neither_written_nor_taken(
    server, quick, tmp_path, monkeypatch, plant
):
    server.add("file.bin", CONTENT)
    elsewhere, cache = tmp_path / "mine.txt", tmp_path / "cache"
    elsewhere.write_bytes(b"my own")
    cache.mkdir()
    cache.chmod(0o777)
    plant(partial_of(cache / "file.bin"), elsewhere)
    if os.geteuid() != 0 and plant is plant_as_another_user:
        own = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    with pytest.raises(SourceError, match=r"file\.bin\.partial is a link or another user's file; delete it"):
        download(server.base + "file.bin", cache / "file.bin", EXPECTED, quick)
    assert elsewhere.read_bytes() == b"my own"
    assert not (cache / "file.bin").exists()
