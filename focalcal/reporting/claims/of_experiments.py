"""Evaluators of experimental claims: each compares a check of the runs at hand with what a paper says."""

from collections.abc import Callable
from typing import Protocol

from focalcal.reporting.claims.evidence import Evidence, Finding

CHECKS = "results/tables/experiment_checks.csv"


class _Claim(Protocol):
    tolerance: float


def runs_at_least(claim: _Claim, evidence: Evidence, *, check: str, bound: float) -> Finding:
    """Return whether a check of the runs is at least `bound`, give or take the tolerance."""
    return _judged(evidence, check, lambda value: value >= bound - claim.tolerance)


def runs_at_most(claim: _Claim, evidence: Evidence, *, check: str, bound: float) -> Finding:
    """Return whether a check of the runs is at most `bound`, give or take the tolerance."""
    return _judged(evidence, check, lambda value: value <= bound + claim.tolerance)


def runs_within(claim: _Claim, evidence: Evidence, *, check: str, low: float, high: float) -> Finding:
    """Return whether a check of the runs lies in [low, high], give or take the tolerance."""
    return _judged(evidence, check, lambda value: low - claim.tolerance <= value <= high + claim.tolerance)


def _judged(evidence: Evidence, name: str, agrees: Callable[[float], bool]) -> Finding:
    """Return whether a check agrees, what it is in words, and whether single seeds say the same."""
    row = evidence.row(CHECKS, {"check": name})
    value = float(row["value"])
    words = f"{value:.3g} ({row['detail']}; n = {row['n']}"
    seeds = [float(text) for text in row["by_seed"].split()]
    if seeds:
        same = sum(agrees(alone) == agrees(value) for alone in seeds)
        words += f"; one seed alone: {min(seeds):.3g} to {max(seeds):.3g}"
        words += "" if same == len(seeds) else f", {same} of {len(seeds)} with this verdict"
    return Finding(agrees(value), f"{words})")
