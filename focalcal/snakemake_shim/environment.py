"""The environment of jobs: this installation's Python, this checkout's modules, the download cache."""

import os
import sys
from pathlib import Path

from focalcal.common.errors import UserError

PLUMBING = True


def set_job_environment(root: Path, cache: str | None) -> None:
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
    if cache is not None:
        os.environ["FOCALCAL_CACHE"] = cache
