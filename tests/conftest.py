"""Order and groups of tests; where CI=true, a skip is a failure unless a variable of the suite allows it."""

import os
from pathlib import Path

import pytest

OPT_IN = "FOCALCAL_"
"""What the reason of such a skip contains."""
LONGEST_FIRST = ("slurm", "workflow", "e2e", "unit")
"""Whole workflows begin before short tests, so that parallel processes end at about the same time."""

# Several processes test at a time, and threads that wait for one another on busy cores take up to five times
# the processor time. Here, before numpy and torch are imported.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
# Compiled once for all processes and for the copies of the sources that tests make.
os.environ["NUMBA_CACHE_DIR"] = str(Path(__file__).resolve().parents[1] / ".pytest_cache" / "numba")


# First, since xdist then reads the groups.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    def place(item):
        return next((LONGEST_FIRST.index(part) for part in item.path.parts if part in LONGEST_FIRST), 0)

    items.sort(key=place)
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            # One process runs a file, so what its tests share is made once.
            item.add_marker(pytest.mark.xdist_group(f"{item.path.parent.name}/{item.path.stem}"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    report = yield
    if os.environ.get("CI") == "true" and report.skipped and not hasattr(report, "wasxfail"):
        *_, reason = report.longrepr
        if OPT_IN not in reason:
            report.outcome, report.longrepr = "failed", f"skipped, which CI=true does not allow: {reason}"
    return report
