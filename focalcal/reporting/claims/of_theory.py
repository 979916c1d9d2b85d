"""Evaluators of theoretical claims: each compares numbers of the theory stage with what a paper prints."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from focalcal.reporting.claims.evidence import Claim, Evidence, Finding, MissingEvidence

CHECKS = "results/theory/checks.csv"
BOUNDS = "results/theory/bounds.csv"
MATCHING = "results/theory/matching.csv"
FITS = "results/theory/matching_fits.csv"
LINEAR_MODEL = "results/theory/linear_model.csv"
PAPER_BOX = 5.0
"""Half width of K24's box of logits."""
FIGURE_GAMMAS = (0.5, 1.0, 2.0, 3.0)
"""gammas that K24's figures show."""


def check_values(
    claim: Claim, evidence: Evidence, *, expected: Mapping[str, float], beside: Sequence[str] = ()
) -> Finding:
    """Return whether each named check is within the tolerance of the printed number.

    Checks that `beside` names are shown and not judged: the paper says nothing about them.
    """
    found = {name: _check(evidence, name) for name in (*expected, *beside)}
    agrees = all(abs(found[name][0] - value) <= claim.tolerance for name, value in expected.items())
    return Finding(agrees, "; ".join(_words(name, *check) for name, check in found.items()))


def check_at_least(claim: Claim, evidence: Evidence, *, check: str, bound: float) -> Finding:
    """Return whether a named check is at least `bound`, give or take the tolerance."""
    value, detail = _check(evidence, check)
    return Finding(value >= bound - claim.tolerance, _words(check, value, detail))


def check_at_most(claim: Claim, evidence: Evidence, *, check: str, bound: float) -> Finding:
    """Return whether a named check is at most `bound`, give or take the tolerance."""
    value, detail = _check(evidence, check)
    return Finding(value <= bound + claim.tolerance, _words(check, value, detail))


def checks_within(claim: Claim, evidence: Evidence, *, checks: list[str], low: float, high: float) -> Finding:
    """Return whether every named check lies in [low, high], give or take the tolerance."""
    values = {name: _check(evidence, name)[0] for name in checks}
    agrees = all(low - claim.tolerance <= value <= high + claim.tolerance for value in values.values())
    return Finding(agrees, "; ".join(f"{name} = {value:.3g}" for name, value in values.items()))


def confidence_raised(claim: Claim, evidence: Evidence, *, classes: list[int]) -> Finding:
    """Return whether Psi never lowers the top probability, for each class count; else the counterexample."""
    gains = {count: _check(evidence, f"k24_confidence_gain_margin_{count}") for count in classes}
    broken = {count: gain for count, gain in gains.items() if gain[0] < -claim.tolerance}
    if not broken:
        return Finding(True, f"never lowered for {', '.join(map(str, classes))} classes")
    kept = [str(count) for count in classes if count not in broken]
    lowered = [f"{n} classes: lowered by {-value:.2g} at {detail}" for n, (value, detail) in broken.items()]
    return Finding(False, "; ".join([f"holds for {', '.join(kept)} classes", *lowered]))


def table_values(
    claim: Claim, evidence: Evidence, *, where: Mapping[str, Any], expected: Mapping[str, float]
) -> Finding:
    """Return whether columns of one row of the evidence table are within the tolerance of the paper."""
    row = evidence.row(claim.evidence, where)
    agrees = all(abs(float(row[column]) - value) <= claim.tolerance for column, value in expected.items())
    return Finding(agrees, ", ".join(f"{column} {float(row[column]):.4g}" for column in expected))


def table_at_most(
    claim: Claim, evidence: Evidence, *, where: Mapping[str, Any], column: str, bound: float
) -> Finding:
    """Return whether a column of one row of the evidence table is at most `bound` plus the tolerance."""
    value = float(evidence.row(claim.evidence, where)[column])
    return Finding(value <= bound + claim.tolerance, f"{column} {value:.4g}")


def line_is_close(
    claim: Claim, evidence: Evidence, *, classes: int, slope: float, intercept: float
) -> Finding:
    """Return whether a printed line of 1/T on gamma is as close to the exact 1/T as the least-squares line.

    Both are judged by their largest deviation on gamma in (0, 10]; the printed one may exceed the fitted
    one's by the tolerance, as a fraction.
    """
    gaps = [
        (abs(slope * gamma + intercept - 1.0 / temperature), gamma)
        for gamma, temperature in _matches(evidence, classes).items()
    ]
    worst, gamma = max(gaps)
    fitted = float(evidence.row(FITS, _stated_fit(classes))["largest_residual"])
    agrees = worst <= fitted * (1.0 + claim.tolerance)
    return Finding(
        agrees, f"1/T off by up to {worst:.3f} (at gamma {gamma:g}); best fit by up to {fitted:.3f}"
    )


def line_fit(
    claim: Claim, evidence: Evidence, *, classes: int, slope: float, intercept: float, any_range: bool
) -> Finding:
    """Return whether a fitted line's slope and intercept are within the tolerance of the printed ones.

    The line is fitted on gamma in (0, 10], or with `any_range`, where the paper does not say, on any range.
    """
    stated = evidence.row(FITS, _stated_fit(classes))
    fits = [row for row in evidence.table(FITS) if _in_paper_box(row, classes)] if any_range else [stated]
    close = [
        abs(float(fit["slope"]) - slope) <= claim.tolerance
        and abs(float(fit["intercept"]) - intercept) <= claim.tolerance
        for fit in fits
    ]
    words = "; ".join(
        f"{float(fit['slope']):.3f} gamma + {float(fit['intercept']):.3f} on "
        f"({float(fit['gamma_above']):g}, {float(fit['gamma_to']):g}]"
        for fit in fits
    )
    return Finding(any(close), words)


def figure_temperature(
    claim: Claim, evidence: Evidence, *, classes: int, gamma: float, temperature: float
) -> Finding:
    """Return whether a caption's temperature is the closest one; if not, where it would be."""
    exact = _matches(evidence, classes).get(gamma)
    if exact is None:
        raise MissingEvidence(f"no match for {classes} classes, gamma {gamma:g} in {MATCHING}")
    agrees = abs(exact - temperature) <= claim.tolerance
    if agrees:
        return Finding(True, f"{exact:.4f}")
    words = f"{exact:.4f}{_belongs_to(claim, evidence, temperature)}"
    if classes == 2:
        row = evidence.row(BOUNDS, {"gamma": gamma})
        words += f"; the exact bounds are [{float(row['line_low']):.4f}, {float(row['line_high']):.4f}]"
    return Finding(False, words)


def temperatures_fall(claim: Claim, evidence: Evidence, *, below: float) -> Finding:
    """Return whether all matching temperatures are below a bound and fall as gamma grows."""
    counts = sorted({int(float(row["classes"])) for row in evidence.table(MATCHING)})
    curves = [sorted(_matches(evidence, count).items()) for count in counts]
    temperatures = [[temperature for _, temperature in curve] for curve in curves]
    highest = max(max(curve) for curve in temperatures)
    falling = all(b < a for curve in temperatures for a, b in itertools.pairwise(curve))
    agrees = highest < below + claim.tolerance and falling
    return Finding(agrees, f"highest {highest:.4f}, {'falling' if falling else 'not falling'} with gamma")


def certified_sharper(claim: Claim, evidence: Evidence) -> Finding:
    """Return whether the lower slope proved for all logits exceeds K24's for every certified gamma."""
    proofs = evidence.json(claim.evidence)["theorem_a"]
    gains = {}
    for proof in proofs:
        gamma = proof["gamma"]
        # the constant is printed as a ball "[value +/- radius]" or as a float
        proved = float(proof["lower_constant"].strip("[]").split()[0])
        gains[gamma] = proved - (gamma + 1.0 - math.log1p(gamma) / 2.0)
    words = ", ".join(f"+{gain:.3f} at gamma {gamma:g}" for gamma, gain in gains.items())
    return Finding(
        min(gains.values()) > claim.tolerance, f"lower slope 1/T proved for all logits, above K24's: {words}"
    )


def norms_shrink(claim: Claim, evidence: Evidence, *, column: str, at_least: float) -> Finding:
    """Return whether cross-entropy's norm is at least that many times focal loss's on every dataset."""
    ratios = [float(ce[column]) / float(focal[column]) for ce, focal in _linear_pairs(evidence)]
    return Finding(
        min(ratios) >= at_least - claim.tolerance,
        f"cross-entropy / focal = {min(ratios):.3g} to {max(ratios):.3g} over {len(ratios)} datasets",
    )


def norms_grow(claim: Claim, evidence: Evidence, *, column: str) -> Finding:
    """Return whether focal loss's norm is the larger one on every dataset."""
    ratios = [float(focal[column]) / float(ce[column]) for ce, focal in _linear_pairs(evidence)]
    return Finding(
        min(ratios) > 1.0 - claim.tolerance,
        f"focal / cross-entropy = {min(ratios):.3g} to {max(ratios):.3g} over {len(ratios)} datasets",
    )


def directions_agree(claim: Claim, evidence: Evidence, *, degrees: float) -> Finding:
    """Return whether both losses' weight vectors point the same way on every dataset."""
    angles = [abs(math.degrees(_angle(ce) - _angle(focal))) for ce, focal in _linear_pairs(evidence)]
    return Finding(max(angles) <= degrees + claim.tolerance, f"at most {max(angles):.2g} degrees apart")


def mistakes_are_confident(claim: Claim, evidence: Evidence, *, loss: str, at_least: float) -> Finding:
    """Return whether that share of the mistakes has a confidence above 90 %, for any spread of the clusters.

    The paper does not say how far its clusters spread, so that one spread that agrees is enough.
    """
    rows = [row for row in evidence.table(LINEAR_MODEL) if row["loss"] == loss]
    shares = {float(row["spread"]): [] for row in rows}
    for row in rows:
        shares[float(row["spread"])].append(float(row["mistakes_above_90"]))
    means = {spread: sum(values) / len(values) for spread, values in shares.items()}
    words = ", ".join(f"{100 * mean:.0f} % (spread {spread:g})" for spread, mean in means.items())
    return Finding(max(means.values()) >= at_least - claim.tolerance, f"above 90 % confidence: {words}")


def mistakes_less_confident(claim: Claim, evidence: Evidence, *, column: str) -> Finding:
    """Return whether focal loss's mistakes are less confident than cross-entropy's on every dataset."""
    gaps = [float(ce[column]) - float(focal[column]) for ce, focal in _linear_pairs(evidence)]
    return Finding(min(gaps) > -claim.tolerance, f"lower by {min(gaps):.3g} to {max(gaps):.3g}")


def _check(evidence: Evidence, name: str) -> tuple[float, str]:
    """Return the value and the detail of one check."""
    row = evidence.row(CHECKS, {"name": name})
    return float(row["value"]), row["detail"]


def _words(name: str, value: float, detail: str) -> str:
    """Return a number with the name it has in the evidence and what it is."""
    return f"{name} = {value:.4g}" + (f" ({detail})" if detail else "")


def _matches(evidence: Evidence, classes: int) -> dict[float, float]:
    """Return the matching temperature of each gamma for one class count in K24's box."""
    rows = [row for row in evidence.table(MATCHING) if _in_paper_box(row, classes)]
    if not rows:
        raise MissingEvidence(f"no matches for {classes} classes in {MATCHING}")
    return {float(row["gamma"]): float(row["temperature"]) for row in rows}


def _belongs_to(claim: Claim, evidence: Evidence, temperature: float) -> str:
    """Return which classes and gamma of the figures the printed temperature fits, in words."""
    places = []
    for classes in sorted({int(float(row["classes"])) for row in evidence.table(MATCHING)}):
        matches = _matches(evidence, classes)
        places += [
            f"{classes} classes, gamma {gamma:g}"
            for gamma in FIGURE_GAMMAS
            if abs(matches.get(gamma, math.inf) - temperature) <= claim.tolerance
        ]
    return (
        f"; {temperature:g} fits {' and '.join(places)}"
        if places
        else f"; {temperature:g} fits no figure's gamma"
    )


def _stated_fit(classes: int) -> dict[str, float]:
    """Return the key of the line fitted on gamma in (0, 10] in K24's box."""
    return {"classes": classes, "max_logit": PAPER_BOX, "gamma_above": 0.0, "gamma_to": 10.0}


def _in_paper_box(row: Mapping[str, str], classes: int) -> bool:
    """Return whether a row is of that class count in K24's box."""
    return float(row["classes"]) == classes and float(row["max_logit"]) == PAPER_BOX


def _linear_pairs(evidence: Evidence) -> list[tuple[dict[str, str], dict[str, str]]]:
    """Return the cross-entropy and the focal row of each dataset of the linear model."""
    rows = evidence.table(LINEAR_MODEL)
    focal = {(row["spread"], row["seed"]): row for row in rows if row["loss"] != "ce"}
    return [(row, focal[row["spread"], row["seed"]]) for row in rows if row["loss"] == "ce"]


def _angle(row: Mapping[str, str]) -> float:
    """Return the direction of a linear model's weights, in radians."""
    return math.atan2(float(row["weight_2"]), float(row["weight_1"]))
