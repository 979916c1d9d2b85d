"""Evaluators of claims: of checks, of tables, of K24's lines, captions and proof of the temperature bounds.

`at_least`, `at_most`, `within` and `equals` compare computed checks, found by name. A check that was measured
on runs must agree for every dataset and model inside the claim's setting; with `pooled`, where the paper
speaks of all cases together, its mean over them must. `table_...` compare numbers in one column of a table:
`where` gives the value of each column that identifies a row, or a list of values, which chooses one row for
each. A number may miss a bound by the tolerance.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, product
from typing import Any

from focalcal.common.checks import Check
from focalcal.reporting.claims.evidence import Claim, Evidence, Finding, MissingEvidence

BOUNDS = "results/theory/bounds.csv"
MATCHING = "results/theory/matching.csv"
FITS = "results/theory/matching_fits.csv"
K24_BOX = {"max_logit": 5.0}
"""Half width of K24's box of logits."""
K24_FIT = {**K24_BOX, "gamma_above": 0.0, "gamma_to": 10.0}
"""The line fitted on gamma in (0, 10] in K24's box."""
PAPER_PREFIXES = ("k24_", "m20_", "c21_")
FIGURE_GAMMAS = (0.5, 1.0, 2.0, 3.0)
"""gammas that K24's figures show."""
Where = Mapping[str, Any]
"""What identifies the rows of a table: by column, a value or a list of values."""


def at_least(
    claim: Claim, evidence: Evidence, *, check: str | list[str], bound: float, pooled: bool = False
) -> Finding:
    """Return whether every check is at least `bound`."""
    return within(claim, evidence, check=check, low=bound, high=math.inf, pooled=pooled)


def at_most(
    claim: Claim, evidence: Evidence, *, check: str | list[str], bound: float, pooled: bool = False
) -> Finding:
    """Return whether every check is at most `bound`."""
    return within(claim, evidence, check=check, low=-math.inf, high=bound, pooled=pooled)


def within(
    claim: Claim,
    evidence: Evidence,
    *,
    check: str | list[str],
    low: float,
    high: float,
    pooled: bool = False,
) -> Finding:
    """Return whether every check lies in [low, high]; None if no run is inside the claim's setting."""

    def agrees(value: float) -> bool:
        return low - claim.tolerance <= value <= high + claim.tolerance

    names = [check] if isinstance(check, str) else check
    checks = [found for name in names for found in evidence.checks(claim.table, name, claim.setting.name)]
    inside: list[Any] = [found for found in checks if not found.outside]
    outside = _describe_outside(claim, [found for found in checks if found.outside])
    words = "; ".join(_describe_check(claim, found, agrees) for found in inside)
    about = f"{names[0]}: " if checks[0].place else ""
    if pooled and inside:
        mean = sum(found.value * found.n for found in inside) / sum(found.n for found in inside)
        words = f"together {_digits(claim, mean)}: {words}"
    if not inside:
        return Finding(None, f"{about}not run in this setting; {outside}")
    words = "; ".join(filter(None, [f"{about}{words}", outside]))
    return Finding(agrees(mean) if pooled else all(agrees(found.value) for found in inside), words)


def equals(
    claim: Claim, evidence: Evidence, *, expected: Mapping[str, float], beside: Sequence[str] = ()
) -> Finding:
    """Return whether each check has its printed value.

    Checks that `beside` names are shown and not judged: the paper says nothing about them.
    """
    found = {name: evidence.check(claim.table, name) for name in (*expected, *beside)}
    agrees = all(abs(found[name].value - value) <= claim.tolerance for name, value in expected.items())
    return Finding(agrees, "; ".join(_describe_check(claim, check) for check in found.values()))


def table_equals(claim: Claim, evidence: Evidence, *, where: Where, expected: Mapping[str, float]) -> Finding:
    """Return whether columns of one row have their printed values."""
    row = evidence.row(claim.table, where)
    found = {column: float(row[column]) for column in expected}
    agrees = all(abs(found[column] - value) <= claim.tolerance for column, value in expected.items())
    return Finding(agrees, _listed(claim, found))


def table_at_least(claim: Claim, evidence: Evidence, *, column: str, where: Where, bound: float) -> Finding:
    """Return whether the column is at least `bound` in every row."""
    numbers = _numbers(claim, evidence, column, where)
    return Finding(min(numbers.values()) >= bound - claim.tolerance, _listed(claim, numbers))


def table_at_most(claim: Claim, evidence: Evidence, *, column: str, where: Where, bound: float) -> Finding:
    """Return whether the column is at most `bound` in every row."""
    numbers = _numbers(claim, evidence, column, where)
    return Finding(max(numbers.values()) <= bound + claim.tolerance, _listed(claim, numbers))


def table_spread(claim: Claim, evidence: Evidence, *, column: str, where: Where, bound: float) -> Finding:
    """Return whether the column differs by at most `bound` between the rows."""
    numbers = _numbers(claim, evidence, column, where)
    spread = max(numbers.values()) - min(numbers.values())
    words = f"spread {_digits(claim, spread)}: {_listed(claim, numbers)}"
    return Finding(spread <= bound + claim.tolerance, words)


def table_lowest(claim: Claim, evidence: Evidence, *, column: str, where: Where, lowest: str) -> Finding:
    """Return whether the column is lowest in the row that `lowest` names."""
    numbers = _numbers(claim, evidence, column, where)
    return Finding(numbers[lowest] <= min(numbers.values()) + claim.tolerance, _listed(claim, numbers))


def table_rises(
    claim: Claim, evidence: Evidence, *, column: str, where: Where, along: str, mean_over: str | None = None
) -> Finding:
    """Return whether the column rises along the values of one key, for each value of the other keys.

    With `mean_over` its mean over the values of that key must rise.
    """
    series = _series(claim, evidence, column, where, along, mean_over)
    agrees = all(
        later > earlier - claim.tolerance
        for numbers in series.values()
        for earlier, later in pairwise(numbers.values())
    )
    words = f"mean over {mean_over}: " if mean_over else ""
    return Finding(agrees, words + _listed_series(claim, series))


def table_ratio(
    claim: Claim, evidence: Evidence, *, column: str, where: Where, along: str, bound: float
) -> Finding:
    """Return whether the first of two numbers along a key is at least `bound` times the second.

    This must hold for each value of the other keys.
    """
    series = _series(claim, evidence, column, where, along)
    pairs = [tuple(numbers.values()) for numbers in series.values()]
    agrees = all(first >= (bound - claim.tolerance) * second for first, second in pairs)
    return Finding(agrees, _listed_series(claim, series))


def line_is_close(
    claim: Claim, evidence: Evidence, *, classes: int, slope: float, intercept: float
) -> Finding:
    """Return whether a printed line of 1/T on gamma is as close to the exact 1/T as the least-squares line.

    Both are judged by their largest deviation on gamma in (0, 10]; the printed one may exceed the fitted
    one's by the tolerance, as a fraction.
    """
    matches = _matching_temperatures(evidence, classes=classes)
    worst, gamma = max((abs(slope * g + intercept - 1.0 / match), g) for (_, g), match in matches.items())
    fitted = float(evidence.row(FITS, {**K24_FIT, "classes": classes})["largest_residual"])
    words = f"1/T off by up to {worst:.3f} (at gamma {gamma:g}); best fit by up to {fitted:.3f}"
    return Finding(worst <= fitted * (1.0 + claim.tolerance), words)


def line_fit(
    claim: Claim, evidence: Evidence, *, classes: int, slope: float, intercept: float, any_range: bool
) -> Finding:
    """Return whether a fitted line's slope and intercept are within the tolerance of the printed ones.

    The line is fitted on gamma in (0, 10], or with `any_range`, where the paper does not say, on any range.
    """
    rows = evidence.rows(FITS, {**(K24_BOX if any_range else K24_FIT), "classes": classes})
    fits = [{name: float(text) for name, text in row.items()} for row in rows]
    off = [max(abs(fit["slope"] - slope), abs(fit["intercept"] - intercept)) for fit in fits]
    words = "{slope:.3f} gamma + {intercept:.3f} on ({gamma_above:g}, {gamma_to:g}]"
    return Finding(min(off) <= claim.tolerance, "; ".join(words.format(**fit) for fit in fits))


def figure_temperature(
    claim: Claim, evidence: Evidence, *, classes: int, gamma: float, temperature: float, line: Sequence[float]
) -> Finding:
    """Return whether a caption's temperature is the closest one; if not, where it could come from.

    `line` has slope and intercept of 1/T on gamma that the paper prints for as many classes.
    """
    exact = float(evidence.row(MATCHING, {**K24_BOX, "classes": classes, "gamma": gamma})["temperature"])
    if abs(exact - temperature) <= claim.tolerance:
        return Finding(True, f"{exact:.4f}")
    lines = {g: 1.0 / (line[0] * g + line[1]) for g in FIGURE_GAMMAS}
    matches = {g: match for (_, g), match in _matching_temperatures(evidence, classes=classes).items()}
    fitting = [
        f"{name} at gamma {g:g} ({value:.4f})"
        for name, values in (("the printed line", lines), ("the closest temperature", matches))
        for g, value in values.items()
        if g in FIGURE_GAMMAS and abs(value - temperature) <= claim.tolerance
    ]
    words = f"{exact:.4f}; {temperature:g} agrees with {' and '.join(fitting) or 'no figure gamma'}"
    if classes == 2:
        row = evidence.row(BOUNDS, {"gamma": gamma})
        words += f"; the exact bounds are [{float(row['line_low']):.4f}, {float(row['line_high']):.4f}]"
    return Finding(False, words)


def temperatures_fall(claim: Claim, evidence: Evidence, *, below: float) -> Finding:
    """Return whether all matching temperatures are below a bound and fall as gamma grows."""
    matches = _matching_temperatures(evidence)
    highest = max(matches.values())
    steps = [(one, other) for one, other in pairwise(matches) if one[0] == other[0]]
    falling = all(matches[other] < matches[one] for one, other in steps)
    agrees = highest < below + claim.tolerance and falling
    return Finding(agrees, f"highest {highest:.4f}, {'falling' if falling else 'not falling'} with gamma")


def certified_sharper(claim: Claim, evidence: Evidence) -> Finding:
    """Return whether the lower slope proved for all logits exceeds K24's for every certified gamma."""
    gains = {}
    for proof in evidence.json(claim.table)["theorem_a"]:
        gamma = proof["gamma"]
        # The constant is printed as a ball "[value +/- radius]" or as a float.
        proved = float(proof["lower_constant"].strip("[]").split()[0])
        gains[gamma] = proved - (gamma + 1.0 - math.log1p(gamma) / 2.0)
    words = ", ".join(f"+{gain:.3f} at gamma {gamma:g}" for gamma, gain in gains.items())
    words = f"lower slope 1/T proved for all logits, above K24's: {words}"
    return Finding(min(gains.values()) > claim.tolerance, words)


def _describe_check(claim: Claim, check: Check, agrees: Callable[[float], bool] | None = None) -> str:
    """Return a check in words, with the verdicts of single seeds if they are known and differ."""
    notes = [check.detail] if check.detail else []
    if check.n is not None:
        notes.append(f"n = {check.n}")
    if check.by_seed:
        note = f"one seed alone: {_digits(claim, min(check.by_seed))} to {_digits(claim, max(check.by_seed))}"
        same = [agrees(alone) == agrees(check.value) for alone in check.by_seed] if agrees else []
        notes.append(note if all(same) else f"{note}, {sum(same)} of {len(same)} with this verdict")
    name = check.name.partition("_")[2] if check.name.startswith(PAPER_PREFIXES) else check.name
    words = f"{check.place or name.replace('_', ' ')} = {_digits(claim, check.value)}"
    return words + (f" ({'; '.join(notes)})" if notes else "")


def _describe_outside(claim: Claim, checks: Sequence[Check]) -> str:
    """Return what was measured outside the claim's setting, grouped by the reason; nothing without any."""
    groups: dict[str, list[str]] = {}
    for check in checks:
        groups.setdefault(check.outside, []).append(f"{check.place} {_digits(claim, check.value)}")
    listed = "; ".join(f"{', '.join(places)} ({reason})" for reason, places in groups.items())
    return f"outside the setting: {listed}" if groups else ""


def _numbers(claim: Claim, evidence: Evidence, column: str, where: Where) -> dict[str, float]:
    """Return the numbers of the chosen rows by the listed values that chose them (one row: by column)."""
    cells = _chosen_cells(claim, evidence, column, where)
    return {", ".join(chosen.values()) or column: number for chosen, number in cells}


def _series(
    claim: Claim, evidence: Evidence, column: str, where: Where, along: str, mean_over: str | None = None
) -> dict[str, dict[str, float]]:
    """Return numbers by the value of the key `along`, for each combination of values of the other keys."""
    found: dict[str, dict[str, list[float]]] = {}
    for chosen, number in _chosen_cells(claim, evidence, column, where):
        others = ", ".join(value for key, value in chosen.items() if key not in (along, mean_over))
        found.setdefault(others, {}).setdefault(chosen[along], []).append(number)
    return {
        others: {name: sum(values) / len(values) for name, values in numbers.items()}
        for others, numbers in found.items()
    }


def _chosen_cells(
    claim: Claim, evidence: Evidence, column: str, where: Where
) -> list[tuple[dict[str, str], float]]:
    """Return each chosen row's number with the values that chose it among those listed in `where`."""
    lists = {key: values for key, values in where.items() if isinstance(values, list)}
    cells = []
    for values in product(*lists.values()):
        chosen = dict(zip(lists, values, strict=True))
        row = evidence.row(claim.table, {**where, **chosen})
        if not row[column]:
            wanted = ", ".join(map(str, {**where, **chosen}.values()))
            reason = row.get("note") or "not computed"
            raise MissingEvidence(f"{wanted} has no {column} in {claim.table}: {reason}")
        cells.append((chosen, float(row[column])))
    return cells


def _matching_temperatures(evidence: Evidence, **where: Any) -> dict[tuple[int, float], float]:
    """Return the matching temperature in K24's box by class count and gamma, both ascending."""
    rows = evidence.rows(MATCHING, {**K24_BOX, **where})
    found = {(int(row["classes"]), float(row["gamma"])): float(row["temperature"]) for row in rows}
    return dict(sorted(found.items()))


def _digits(claim: Claim, number: float) -> str:
    """Return a number with four digits if it is exact and three if it is measured."""
    return f"{number:.{4 if claim.kind == 'exact' else 3}g}"


def _listed(claim: Claim, numbers: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {_digits(claim, number)}" for name, number in numbers.items())


def _listed_series(claim: Claim, series: Mapping[str, Mapping[str, float]]) -> str:
    texts = {others: _listed(claim, numbers) for others, numbers in series.items()}
    return "; ".join(f"{others}: {text}" if others else text for others, text in texts.items())
