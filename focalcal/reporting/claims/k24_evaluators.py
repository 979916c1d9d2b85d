"""Evaluators of K24's printed lines and captions, and of the proof of the temperature bounds."""

import itertools
import math

from focalcal.reporting.claims.evidence import Claim, Evidence, Finding, MissingEvidence

BOUNDS = "results/theory/bounds.csv"
MATCHING = "results/theory/matching.csv"
FITS = "results/theory/matching_fits.csv"
PAPER_BOX = 5.0
"""Half width of K24's box of logits."""
FIGURE_GAMMAS = (0.5, 1.0, 2.0, 3.0)
"""gammas that K24's figures show."""


def line_is_close(
    claim: Claim, evidence: Evidence, *, classes: int, slope: float, intercept: float
) -> Finding:
    """Return whether a printed line of 1/T on gamma is as close to the exact 1/T as the least-squares line.

    Both are judged by their largest deviation on gamma in (0, 10]; the printed one may exceed the fitted
    one's by the tolerance, as a fraction.
    """
    gaps = [
        (abs(slope * gamma + intercept - 1.0 / temperature), gamma)
        for gamma, temperature in _closest_temperatures(evidence, classes).items()
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
    rows = evidence.table(FITS) if any_range else [stated]
    fits = [{name: float(text) for name, text in row.items()} for row in rows]
    fits = [fit for fit in fits if (fit["classes"], fit["max_logit"]) == (classes, PAPER_BOX)]
    off = [max(abs(fit["slope"] - slope), abs(fit["intercept"] - intercept)) for fit in fits]
    words = "{slope:.3f} gamma + {intercept:.3f} on ({gamma_above:g}, {gamma_to:g}]"
    return Finding(min(off) <= claim.tolerance, "; ".join(words.format(**fit) for fit in fits))


def figure_temperature(
    claim: Claim, evidence: Evidence, *, classes: int, gamma: float, temperature: float
) -> Finding:
    """Return whether a caption's temperature is the closest one; if not, where it would be."""
    exact = _closest_temperatures(evidence, classes).get(gamma)
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
    curves = [[curve[gamma] for gamma in sorted(curve)] for curve in _temperatures_in_box(evidence).values()]
    highest = max(max(curve) for curve in curves)
    falling = all(b < a for curve in curves for a, b in itertools.pairwise(curve))
    agrees = highest < below + claim.tolerance and falling
    return Finding(agrees, f"highest {highest:.4f}, {'falling' if falling else 'not falling'} with gamma")


def certified_sharper(claim: Claim, evidence: Evidence) -> Finding:
    """Return whether the lower slope proved for all logits exceeds K24's for every certified gamma."""
    proofs = evidence.json(claim.table)["theorem_a"]
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


def _closest_temperatures(evidence: Evidence, classes: int) -> dict[float, float]:
    """Return the matching temperature of each gamma for one class count in K24's box."""
    matches = _temperatures_in_box(evidence)
    if classes not in matches:
        raise MissingEvidence(f"no matches for {classes} classes in {MATCHING}")
    return matches[classes]


def _temperatures_in_box(evidence: Evidence) -> dict[int, dict[float, float]]:
    """Return the matching temperature for each class count, ascending, and gamma in K24's box."""
    found: dict[int, dict[float, float]] = {}
    for row in evidence.table(MATCHING):
        if float(row["max_logit"]) == PAPER_BOX:
            found.setdefault(int(row["classes"]), {})[float(row["gamma"])] = float(row["temperature"])
    return dict(sorted(found.items()))


def _belongs_to(claim: Claim, evidence: Evidence, temperature: float) -> str:
    """Return which classes and gamma of the figures the printed temperature fits, in words."""
    fitting = [
        f"{classes} classes, gamma {gamma:g}"
        for classes, matches in _temperatures_in_box(evidence).items()
        for gamma in FIGURE_GAMMAS
        if abs(matches.get(gamma, math.inf) - temperature) <= claim.tolerance
    ]
    words = " and ".join(fitting) or "no figure's gamma"
    return f"; {temperature:g} fits {words}"


def _stated_fit(classes: int) -> dict[str, float]:
    """Return the key of the line fitted on gamma in (0, 10] in K24's box."""
    return {"classes": classes, "max_logit": PAPER_BOX, "gamma_above": 0.0, "gamma_to": 10.0}
