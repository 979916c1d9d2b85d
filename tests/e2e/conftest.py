"""The report of a made-up results folder, and a Chromium to open it in."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.browser import Browser
from tests.e2e.made_results import MadeResults

ARTEFACTS = Path(__file__).with_name("artefacts")
BLOCKS = [
    {
        "datasets": ["gauss-10", "gauss-3"],
        "models": ["mlp"],
        "losses": ["ce", "focal-1", "focal-3", "focal-5", "flsd-53"],
        "seeds": [1, 2, 3, 4, 5, 6, 7],
        "recipe": "quickstart",
    }
]
FAILED = "gauss-3/mlp/focal-5/seed7"


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    """The path of a report of 70 runs, one of which failed."""
    made = MadeResults(tmp_path_factory.mktemp("made"), BLOCKS, failed=[FAILED])
    made.write_runs()
    made.write_tables()
    made.write_figures()
    return made.write_report()


@pytest.fixture(scope="session")
def chromium():
    """The path of Chromium, installed first where this user may."""
    found = _find()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        for command in (["update", "-q"], ["install", "-y", "-q", "--no-install-recommends", "chromium"]):
            done = subprocess.run(["apt-get", *command], capture_output=True, timeout=600, check=False)
            if done.returncode:
                pytest.skip(f"Chromium could not be installed: apt-get {command[0]} failed")
        found = _find()
    if found is None:
        pytest.skip("Chromium is not installed, and only root with apt-get can install it")
    return found


@pytest.fixture(scope="session")
def browser(chromium, tmp_path_factory):
    """One Chromium for all tests."""
    opened = Browser(chromium, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


def _find():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
