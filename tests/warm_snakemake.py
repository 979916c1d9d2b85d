"""Snakemake in forks of a process that has imported it: a second of the two that a dry run would take."""

import atexit
import functools
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

LONGEST_SECONDS = 900
"""An invocation that takes longer is killed."""


def run_snakemake(folder, arguments):
    """Run `python -m snakemake` in a folder; return its exit code, standard output and standard error."""
    server = _server()
    with tempfile.TemporaryDirectory() as outputs:
        streams = [Path(outputs) / name for name in ("stdout", "stderr")]
        request = {
            "folder": str(folder),
            "arguments": arguments,
            "environment": dict(os.environ),
            "streams": list(map(str, streams)),
        }
        server.stdin.write(f"{json.dumps(request)}\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        return (code, *(stream.read_text("utf-8") for stream in streams))


@functools.cache
def _server():
    """Return the one process that forks for the tests of this process; it ends with its standard input."""
    server = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(server.communicate)
    return server


def _serve():
    # The tests themselves need none of this.
    import smart_open  # noqa: F401, PLC0415  Snakemake imports it when it reads the Snakefile
    from snakemake.cli import get_argument_parser, main  # noqa: PLC0415

    get_argument_parser()  # imports the plugins
    # What is loaded stays. Looking for garbage in it would copy its memory into every fork.
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            request = json.loads(line)
            _become(**request)
            main(request["arguments"])
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201  the answer


def _become(folder, arguments, environment, streams):
    """Let this process be as if it had just been started by a shell."""
    signal.alarm(LONGEST_SECONDS)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[0] = folder
    sys.argv = ["snakemake", *arguments]
    for number, path in enumerate([os.devnull, *streams]):
        stream = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(stream, number)
        os.close(stream)


if __name__ == "__main__":
    _serve()
