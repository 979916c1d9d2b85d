"""Snakemake in forks of one process that has loaded it: loading it takes more than a second.

Nothing here imports focalcal: a fork reads the sources of the project that it works on.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["snakemake.cli", "jsonschema"])


def snakemake(arguments, folder, timeout):
    """Run Snakemake in a folder as `python -m snakemake` would; return the ended process."""
    with tempfile.TemporaryDirectory() as scratch:
        printed = [Path(scratch, name) for name in ("stdout", "stderr")]
        process = FORKS.Process(target=_snakemake, args=(arguments, folder, dict(os.environ), printed))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.terminate()
            raise subprocess.TimeoutExpired(arguments, timeout)
        texts = [path.read_text("utf-8", "backslashreplace") for path in printed]
    return subprocess.CompletedProcess(arguments, process.exitcode, *texts)


def _snakemake(arguments, folder, environment, printed):
    from snakemake.cli import main  # noqa: PLC0415

    assert "focalcal" not in sys.modules
    for number, path in enumerate(printed, start=1):
        with path.open("wb") as file:
            os.dup2(file.fileno(), number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    sys.argv = ["snakemake", *arguments]
    main(arguments)
