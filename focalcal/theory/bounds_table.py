"""The table of temperature bounds, one row per gamma, and the summary around the critical gamma."""

import math
from collections.abc import Sequence
from typing import Any

from focalcal.theory.bounds import (
    critical_gamma,
    initial_slope,
    minimising_logit,
    scanned_temperatures,
    theoretical_temperatures,
    tightest_temperatures,
)


def bounds_rows(gammas: Sequence[float], max_logit: float) -> list[dict[str, float]]:
    """Return one row per gamma: K24's bounds, the tightest on |s| <= max_logit and on the whole line."""
    rows = []
    for gamma in gammas:
        theory_low, theory_high = theoretical_temperatures(gamma)
        low, high = tightest_temperatures(gamma, max_logit)
        line_low, line_high = tightest_temperatures(gamma, math.inf)
        rows.append(
            {
                "gamma": float(gamma),
                "theory_low": theory_low,
                "theory_high": theory_high,
                "tightest_low": low,
                "tightest_high": high,
                "max_logit": float(max_logit),
                "line_low": line_low,
                "line_high": line_high,
                "initial_slope": initial_slope(gamma),
                "minimising_logit": minimising_logit(gamma),
            }
        )
    return rows


def bounds_summary(scanned_gammas: Sequence[float], max_logit: float) -> dict[str, Any]:
    """Return the critical gamma, and K24's scan beside the exact bounds at `scanned_gammas`."""
    scans = []
    for gamma in scanned_gammas:
        scan_low, scan_high = scanned_temperatures(gamma, max_logit)
        low, high = tightest_temperatures(gamma, max_logit)
        scans.append(
            {
                "gamma": float(gamma),
                "scan_low": scan_low,
                "scan_high": scan_high,
                "exact_low": low,
                "exact_high": high,
            }
        )
    return {"critical_gamma": critical_gamma(), "max_logit": float(max_logit), "scans": scans}
