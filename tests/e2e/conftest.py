"""The report of a made-up results folder, and a Chromium to open it in."""

from pathlib import Path

import pytest

from tests.e2e.browser import Browser, find_chromium
from tests.unit.reporting.made_results import MadeResults

ARTEFACTS = Path(__file__).with_name("artefacts")
LOSSES = {
    "gauss-10": ["ce", "focal-1", "focal-3", "focal-5", "flsd-53", "brier"],
    "gauss-3": ["ce", "focal-1", "focal-3", "focal-5"],
}
BLOCKS = [
    {
        "datasets": [dataset],
        "models": ["mlp"],
        "losses": losses,
        "seeds": [1, 2, 3, 4, 5, 6, 7],
        "recipe": "quickstart",
    }
    for dataset, losses in LOSSES.items()
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
def browser(tmp_path_factory):
    """One Chromium for all tests."""
    chromium = find_chromium()
    if chromium is None:
        pytest.skip("Chromium is not installed; `make test` installs it where it may")
    opened = Browser(chromium, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()
