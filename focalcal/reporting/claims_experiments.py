"""Evaluators of experimental claims: each compares a check of the runs at hand with what a paper says."""

from typing import Protocol

from focalcal.reporting.findings import Evidence, Finding

CHECKS = "results/tables/experiment_checks.csv"


class _Claim(Protocol):
    tolerance: float


def runs_at_least(claim: _Claim, evidence: Evidence, *, check: str, bound: float) -> Finding:
    """Return whether a check of the runs is at least `bound`, give or take the tolerance."""
    value, words = _check(evidence, check)
    return Finding(value >= bound - claim.tolerance, words)


def runs_at_most(claim: _Claim, evidence: Evidence, *, check: str, bound: float) -> Finding:
    """Return whether a check of the runs is at most `bound`, give or take the tolerance."""
    value, words = _check(evidence, check)
    return Finding(value <= bound + claim.tolerance, words)


def runs_within(claim: _Claim, evidence: Evidence, *, check: str, low: float, high: float) -> Finding:
    """Return whether a check of the runs lies in [low, high], give or take the tolerance."""
    value, words = _check(evidence, check)
    return Finding(low - claim.tolerance <= value <= high + claim.tolerance, words)


def _check(evidence: Evidence, name: str) -> tuple[float, str]:
    """Return a check's value, and value, meaning and count in words."""
    row = evidence.row(CHECKS, {"check": name})
    value = float(row["value"])
    return value, f"{value:.3g} ({row['detail']}; n = {row['n']})"
