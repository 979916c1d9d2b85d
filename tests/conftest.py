"""Where CI=true, a skipped test is a failure, unless an environment variable of the suite opts into it."""

import os

import pytest

OPT_IN = "FOCALCAL_"
"""What the reason of such a skip contains."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    report = yield
    if os.environ.get("CI") == "true" and report.skipped and not hasattr(report, "wasxfail"):
        *_, reason = report.longrepr
        if OPT_IN not in reason:
            report.outcome, report.longrepr = "failed", f"skipped, which CI=true does not allow: {reason}"
    return report
