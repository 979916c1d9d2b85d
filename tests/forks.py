"""Programs run in forks of a process that has loaded Snakemake, which takes more than a second.

Each starts in a folder as `python -m` would start it there. multiprocessing has one such server per process,
which other tests fill with modules of focalcal; here nothing imports focalcal, since a fork reads the sources
of the project that it works on.
"""

import atexit
import functools
import importlib
import json
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PRELOADED = ("snakemake.cli", "jsonschema")


def run(function, arguments, folder, timeout=900):
    """Run `module:function`, which reads sys.argv as a program does; return the ended process."""
    with tempfile.TemporaryDirectory() as scratch:
        printed = [str(Path(scratch, name)) for name in ("stdout", "stderr")]
        server = _server()
        server.stdin.write(json.dumps([function, arguments, str(folder), dict(os.environ), printed]) + "\n")
        server.stdin.flush()
        if not select.select([server.stdout], [], [], timeout)[0]:
            _server.cache_clear()
            server.kill()
            raise subprocess.TimeoutExpired(arguments, timeout)
        code = int(server.stdout.readline())
        texts = [Path(path).read_text("utf-8", "backslashreplace") for path in printed]
    return subprocess.CompletedProcess(arguments, code, *texts)


@functools.cache
def _server():
    command = [sys.executable, "-m", "tests.forks"]
    server = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(server.communicate)
    return server


def _next_request():
    """Return one request, in its own fork; answer the exit codes of earlier ones."""
    while line := sys.stdin.readline():
        fork = os.fork()
        if fork == 0:
            return json.loads(line)
        _, status = os.waitpid(fork, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()
    sys.exit()


def _serve():
    for name in PRELOADED:
        importlib.import_module(name)
    function, arguments, folder, environment, printed = _next_request()
    module, _, name = function.partition(":")
    called = getattr(importlib.import_module(module), name)
    assert "focalcal" not in sys.modules
    for number, path in enumerate([os.devnull, *printed]):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[0] = folder
    sys.argv = [name, *arguments]
    sys.exit(called())


if __name__ == "__main__":
    _serve()
