"""Programs that some tests need, installed once before the test processes start: python -m tests.programs.

Only root with apt-get installs anything; for everybody else this changes nothing and says what is skipped.
"""

import os
import shutil
import subprocess
import sys

from tests.e2e.browser import find_chromium
from tests.slurm import cluster

APT = ("apt-get", "-o", "DPkg::Lock::Timeout=300")


def missing_packages():
    """Return the Debian packages that tests need and that are not installed, by what they are for."""
    missing = {}
    if find_chromium() is None:
        missing["the tests of the report in a browser"] = ["chromium"]
    if not cluster.is_site() and not cluster.is_installed():
        missing["the tests on a SLURM cluster"] = list(cluster.PACKAGES)
    return missing


def main():
    """Install what is missing where that is possible; return the exit code."""
    missing = missing_packages()
    if not missing:
        return 0
    for purpose, packages in missing.items():
        print(f"Not installed: {' '.join(packages)}, for {purpose}.")
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print("They are skipped: only root with apt-get can install these packages.")
        return 0
    packages = [package for names in missing.values() for package in names]
    for command in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        print(f"Running: {' '.join([*APT, *command])}", flush=True)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(
            [*APT, *command], env=environment, stdout=subprocess.DEVNULL, timeout=900, check=False
        )
        if done.returncode:
            print("This failed, so these tests are skipped.")
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
