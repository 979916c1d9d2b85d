"""The order of tests; and where CI=true, a skip is a failure unless a variable of the suite opts into it."""

import os
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
OPT_IN = "FOCALCAL_"
"""What the reason of such a skip contains."""
LONGEST_FIRST = ("slurm", "workflow", "e2e", "unit")
"""Whole workflows begin before short tests, so that parallel processes end at about the same time."""


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONGEST_FIRST.index(item.path.relative_to(FOLDER).parts[0]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    report = yield
    if os.environ.get("CI") == "true" and report.skipped and not hasattr(report, "wasxfail"):
        *_, reason = report.longrepr
        if OPT_IN not in reason:
            report.outcome, report.longrepr = "failed", f"skipped, which CI=true does not allow: {reason}"
    return report
