"""The environment of jobs: this installation's Python and this checkout's modules."""

import os
import subprocess
import sys
from pathlib import Path

from focalcal.common.errors import UserError

PLUMBING = True


def refuse_windows() -> None:
    """Raise a UserError on Windows, where rules find no shell for their commands."""
    if sys.platform == "win32":
        raise UserError(
            "this machine has Windows, and the commands of rules need a POSIX shell; allowed: Linux, macOS; "
            "run the workflow in the Windows Subsystem for Linux"
        )


def set_for_jobs(root: Path) -> None:
    """Set the environment that jobs inherit.

    They then run this Python on this checkout, whether or not an environment is active and wherever
    `--directory` puts the results. An environment that Snakemake activates for a job comes before it.
    Raise a UserError if the path of the checkout would be misread.
    """
    if not set(f"{{}}{os.pathsep}").isdisjoint(str(root)):
        raise UserError(
            f"the path of this checkout, {str(root)!r}, has one of {{, }} and {os.pathsep}, which Snakemake "
            f"or Python would misread; allowed: a path without them; move the checkout"
        )
    os.environ["PATH"] = os.pathsep.join(
        [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    )
    # Python would look for modules in the working directory first, and an empty entry means it too. It may be
    # another checkout, or hold a file whose name is that of a package.
    os.environ["PYTHONSAFEPATH"] = "1"
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(root), *inherited]))


def refuse_without_checkout(root: Path) -> None:
    """Raise a UserError unless `python` finds the modules of this checkout in the environment as it is."""
    command = ["python", "-c", "import workflow_scripts; print(workflow_scripts.__file__)"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        found = "no such modules"
    if Path(found).resolve().parent.parent != root.resolve():
        raise UserError(
            f"jobs of the module at {str(root)!r} would import {found}; allowed: the modules of that folder; "
            f"activate the environment in which it is installed, or name the folder in PYTHONPATH"
        )
