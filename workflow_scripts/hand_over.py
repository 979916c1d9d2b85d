"""The hand-over of a job to the server that has its libraries loaded, if there is one."""

import contextlib
import os
import sys
from pathlib import Path

from focalcal.workflow.environment import NUMBER_BYTES, WARM_SERVER


def hand_over() -> None:
    """Let the server run this program's job and exit with its code; return if it has to run here.

    The server gets arguments, working directory, environment and standard streams; signals are passed on. A
    job runs here if there is no server, if the server has another Python, or with more than one thread.
    """
    prefix, _, address = os.environ.get(WARM_SERVER, "").rpartition(os.pathsep)
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    is_job = spec is not None and spec.name.startswith("workflow_scripts.")
    if not is_job or prefix != sys.prefix or os.environ.get("OMP_NUM_THREADS") != "1":
        return
    # Only now, since most programs have no server.
    import json  # noqa: PLC0415
    import signal  # noqa: PLC0415
    import socket  # noqa: PLC0415

    request = {"module": spec.name, "arguments": sys.argv[1:], "folder": str(Path.cwd())}
    message = json.dumps(request | {"environment": dict(os.environ)}).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(address)
            socket.send_fds(connection, [len(message).to_bytes(NUMBER_BYTES, "big")], [0, 1, 2])
            connection.sendall(message)
            job = int.from_bytes(connection.recv(NUMBER_BYTES, socket.MSG_WAITALL), "big")
        except OSError:
            return
        if job == 0:
            return

        def pass_on(number: int, _frame: object) -> None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(job, number)

        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            signal.signal(number, pass_on)
        code = connection.recv(1)
    # A job that was killed does not answer.
    os._exit(code[0] if code else 128 + signal.SIGKILL)
