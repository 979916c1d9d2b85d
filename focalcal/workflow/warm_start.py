"""The start of the server that runs jobs with the libraries loaded (`warm_server.py`).

Loading torch, numba and scikit-learn takes seconds, and a job of a small run a fraction of one.
"""

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from focalcal.workflow.environment import WARM_SERVER

WAITING_JOBS = 64
"""Connections that may wait while the server loads libraries."""
_RUNNING: list[subprocess.Popen] = []


def start_server() -> None:
    """Start the server and name it in the environment that jobs inherit.

    It ends when this process does, however that ends, since its standard input then ends.
    """
    folder = Path(tempfile.mkdtemp(prefix="focalcal-"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
        listener.listen(WAITING_JOBS)
        # It takes only jobs of one thread, and libraries read these variables when they are loaded.
        one_thread = dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
        )
        server = subprocess.Popen(
            [sys.executable, "-m", "workflow_scripts.warm_server", str(listener.fileno()), str(folder)],
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            env=os.environ | one_thread,
        )
    # Its standard input would be closed with the last reference to it.
    _RUNNING.append(server)
    os.environ[WARM_SERVER] = f"{sys.prefix}{os.pathsep}{folder / 'socket'}"
