"""A server that runs each job in a fork of itself, which has the libraries loaded.

The first job of an entry point makes the server import it, and tells what else it imported while it ran;
later ones find all of that loaded. A fork has the job's own arguments, working directory, environment,
standard streams and signals, and ends with its exit code. The server ends when Snakemake ends, however that
ends: its standard input then ends. Benchmark files of these jobs have their time, but the memory and load of
the process that waits for them.
"""

import contextlib
import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from focalcal.calibration.catalogue import METHODS, declaring_files
from focalcal.workflow.environment import NUMBER_BYTES
from focalcal.workflow.provenance import code_digests

_LONGEST_LIST = 1 << 18
"""Bytes of a list of modules."""
RunMain = Callable[[Callable[..., None]], int]
"""What runs the `main` of an entry point and returns the exit code."""


def serve(listener: int, folder: Path, run: RunMain) -> None:
    """Serve on an open socket, a file descriptor, until standard input ends, then remove its folder."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Ended jobs leave nothing to collect.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with socket.socket(fileno=listener) as opened:
            _fork_jobs(opened, sys.stdin.fileno(), run)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fork_jobs(listener: socket.socket, until: int, run: RunMain) -> None:
    """Fork one job per connection until the file descriptor `until` ends."""
    imported, tell_imported = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    while True:
        ready, _, _ = select.select([listener, imported, until], [], [])
        if until in ready:
            return
        if imported in ready:
            _import_all(json.loads(imported.recv(_LONGEST_LIST)))
            continue
        connection, _ = listener.accept()
        with connection:
            length, streams, _, _ = socket.recv_fds(connection, NUMBER_BYTES, 3)
            message = connection.recv(int.from_bytes(length, "big"), socket.MSG_WAITALL)
            if message:
                request = json.loads(message)
                _load(request["module"])
                if os.fork() == 0:
                    listener.close()
                    _run_job(request, streams, connection, tell_imported, run)
            for stream in streams:
                os.close(stream)


def _load(module: str) -> None:
    """Import an entry point with its libraries, for this job and all later ones."""
    if module not in sys.modules:
        _import_all([module])
        # The digests of its code, which every record has, are kept as well.
        with contextlib.suppress(OSError, SyntaxError):
            code_digests(f"{module.replace('.', '/')}.py", *declaring_files(METHODS))


def _import_all(names: list[str]) -> None:
    for name in names:
        # What cannot be imported is left to the job, which says why in its log.
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    # What is loaded stays. Looking for garbage in it would copy its memory into every job.
    gc.collect()
    gc.freeze()


def _run_job(
    request: dict[str, Any],
    streams: list[int],
    connection: socket.socket,
    tell_imported: socket.socket,
    run: RunMain,
) -> None:
    """Run a job as `python -m MODULE ARGUMENTS` would, answer with its exit code, and end this process."""
    code, known = 1, set(sys.modules)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        sys.argv = [request["module"], *request["arguments"]]
        connection.sendall(os.getpid().to_bytes(NUMBER_BYTES, "big"))
        code = run(importlib.import_module(request["module"]).main)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001  the traceback belongs in the job's log
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        connection.sendall(bytes([code]))
        if found := [name for name in sys.modules if name not in known]:
            with contextlib.suppress(OSError):
                tell_imported.send(json.dumps(found).encode(), socket.MSG_DONTWAIT)
        os._exit(code)
