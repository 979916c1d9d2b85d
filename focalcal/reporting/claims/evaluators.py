"""Evaluators of claims: of checks, of tables, of K24's lines, captions and proof of the temperature bounds.

`at_least`, `at_most`, `within` and `equals` compare computed checks, found by name. A check that was measured
on runs must agree for every dataset and model inside the claim's setting; with `pooled`, where the paper
speaks of all cases together, its mean over them must. `table_...` compare numbers in one column of a table:
`where` gives the value of each column that identifies a row, or a list of values, which chooses one row for
each. A number may miss a bound by the tolerance.

Measurements have an interval: over seeds or test samples of one place, over places where these are pooled. If
it reaches across a bound, or a single run leaves none, the statement is undecided: it gets no verdict.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from statistics import stdev
from typing import Any

from scipy.special import stdtrit

from focalcal.common.checks import Check
from focalcal.common.intervals import CONFIDENCE, tails
from focalcal.reporting.claims.evidence import Claim, Evidence, Finding, MissingEvidence

BOUNDS = "results/theory/bounds.csv"
MATCHING = "results/theory/matching.csv"
FITS = "results/theory/matching_fits.csv"
K24_BOX = {"max_logit": 5.0}
"""Half width of K24's box of logits."""
K24_FIT = {**K24_BOX, "gamma_above": 0.0, "gamma_to": 10.0}
"""The line fitted on gamma in (0, 10] in K24's box."""
PAPER_PREFIXES = ("k24_", "m20_", "c21_", "s26_", "ml26_")
FIGURE_GAMMAS = (0.5, 1.0, 2.0, 3.0)
"""gammas that K24's figures show."""
FEWEST_PLACES = 3
"""Datasets and models whose spread tells how sure their mean is."""
Where = Mapping[str, Any]
"""What identifies the rows of a table: by column, a value or a list of values."""


@dataclass(frozen=True)
class Number:
    """A number with the half width of its interval: 0 if it is exact, NaN if nothing tells how sure it is."""

    value: float
    half_width: float = 0.0

    def __sub__(self, other: "Number") -> "Number":
        return Number(self.value - other.value, math.hypot(self.half_width, other.half_width))

    def within(self, low: float, high: float) -> bool | None:
        """Return whether the number lies in [low, high]; None if its interval reaches across a bound."""
        agrees = low <= self.value <= high
        if self.half_width == 0:
            return agrees
        first, last = self.value - self.half_width, self.value + self.half_width
        if agrees:
            return True if low <= first and last <= high else None
        return False if last < low or high < first else None


def at_least(
    claim: Claim,
    evidence: Evidence,
    *,
    check: str | list[str],
    bound: float,
    pooled: bool = False,
    sampled: bool = True,
) -> Finding:
    """Return whether every check is at least `bound`."""
    return within(claim, evidence, check=check, low=bound, high=math.inf, pooled=pooled, sampled=sampled)


def at_most(
    claim: Claim,
    evidence: Evidence,
    *,
    check: str | list[str],
    bound: float,
    pooled: bool = False,
    sampled: bool = True,
) -> Finding:
    """Return whether every check is at most `bound`."""
    return within(claim, evidence, check=check, low=-math.inf, high=bound, pooled=pooled, sampled=sampled)


def within(
    claim: Claim,
    evidence: Evidence,
    *,
    check: str | list[str],
    low: float,
    high: float,
    pooled: bool = False,
    sampled: bool = True,
) -> Finding:
    """Return whether every check lies in [low, high]; None if no run is inside the claim's setting.

    What was measured on runs is judged with its interval. `sampled: false` is for what needs none: equalities
    by design, the released networks' own numbers, and distances in standard errors.
    """
    bounds = low - claim.tolerance, high + claim.tolerance
    names = [check] if isinstance(check, str) else check
    checks = [found for name in names for found in evidence.checks(claim.table, name, claim.setting.name)]
    inside: list[Any] = [found for found in checks if not found.outside]
    outside = _describe_outside(claim, [found for found in checks if found.outside])
    about = f"{names[0]}: " if checks[0].place else ""
    if not inside:
        return Finding(None, f"{about}not run in this setting; {outside}")
    numbers = [Number(found.value, _half_width(found) if sampled else 0.0) for found in inside]
    words = "; ".join(
        _describe_check(claim, found, number) for found, number in zip(inside, numbers, strict=True)
    )
    if pooled:
        numbers = [_together(inside, numbers)]
        words = f"together {_in_words(claim, numbers[0])}: {words}"
    words = "; ".join(filter(None, [f"{about}{words}", outside]))
    return _found([number.within(*bounds) for number in numbers], words)


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
    found = {column: Number(float(row[column])) for column in expected}
    agrees = all(abs(found[column].value - value) <= claim.tolerance for column, value in expected.items())
    return Finding(agrees, _listed(claim, found))


def table_at_least(claim: Claim, evidence: Evidence, *, column: str, where: Where, bound: float) -> Finding:
    """Return whether the column is at least `bound` in every row."""
    numbers = _numbers(claim, evidence, column, where)
    agree = [number.within(bound - claim.tolerance, math.inf) for number in numbers.values()]
    return _found(agree, _listed(claim, numbers))


def table_at_most(claim: Claim, evidence: Evidence, *, column: str, where: Where, bound: float) -> Finding:
    """Return whether the column is at most `bound` in every row."""
    numbers = _numbers(claim, evidence, column, where)
    agree = [number.within(-math.inf, bound + claim.tolerance) for number in numbers.values()]
    return _found(agree, _listed(claim, numbers))


def table_spread(claim: Claim, evidence: Evidence, *, column: str, where: Where, bound: float) -> Finding:
    """Return whether the column differs by at most `bound` between the rows."""
    numbers = _numbers(claim, evidence, column, where)
    ordered = sorted(numbers.values(), key=lambda number: number.value)
    spread = ordered[-1] - ordered[0]
    words = f"spread {_in_words(claim, spread)}: {_listed(claim, numbers)}"
    return _found([spread.within(-math.inf, bound + claim.tolerance)], words)


def table_lowest(claim: Claim, evidence: Evidence, *, column: str, where: Where, lowest: str) -> Finding:
    """Return whether the column is lowest in the row that `lowest` names."""
    numbers = _numbers(claim, evidence, column, where)
    others = [number for name, number in numbers.items() if name != lowest]
    agree = [(numbers[lowest] - other).within(-math.inf, claim.tolerance) for other in others]
    return _found(agree, _listed(claim, numbers))


def table_rises(
    claim: Claim, evidence: Evidence, *, column: str, where: Where, along: str, mean_over: str | None = None
) -> Finding:
    """Return whether the column rises along the values of one key, for each value of the other keys.

    With `mean_over` its mean over the values of that key must rise.
    """
    series = _series(claim, evidence, column, where, along, mean_over)
    above = math.nextafter(-claim.tolerance, math.inf)
    agree = [
        (later - earlier).within(above, math.inf)
        for numbers in series.values()
        for earlier, later in pairwise(numbers.values())
    ]
    words = f"mean over {mean_over}: " if mean_over else ""
    return _found(agree, words + _listed_series(claim, series))


def table_ratio(
    claim: Claim, evidence: Evidence, *, column: str, where: Where, along: str, bound: float
) -> Finding:
    """Return whether the first of two numbers along a key is at least `bound` times the second.

    This must hold for each value of the other keys.
    """
    series = _series(claim, evidence, column, where, along)
    factor = bound - claim.tolerance
    agree = []
    for first, second in (tuple(numbers.values()) for numbers in series.values()):
        surplus = first - Number(factor * second.value, factor * second.half_width)
        agree.append(surplus.within(0.0, math.inf))
    return _found(agree, _listed_series(claim, series))


def table_lower(
    claim: Claim, evidence: Evidence, *, where: Where, lower: Where, than: Where, columns: Sequence[str]
) -> Finding:
    """Return whether the first column, in the rows of `lower`, is below the second in those of `than`.

    Both add to `where`, whose lists pair their rows.
    """
    first, second = (
        _numbers(claim, evidence, column, {**where, **rows})
        for column, rows in zip(columns, (lower, than), strict=True)
    )
    agree = [(first[name] - second[name]).within(-math.inf, claim.tolerance) for name in first]
    words = [f"{name} {_in_words(claim, first[name])} and {_in_words(claim, second[name])}" for name in first]
    return _found(agree, ", ".join(words))


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
    fits = [
        {name: float(text) for name, text in row.items()}
        for row in evidence.rows(FITS, {**K24_BOX, "classes": classes})
    ]
    lines = "; ".join(
        "{slope:.3f} gamma + {intercept:.3f} on ({gamma_above:g}, {gamma_to:g}]".format(**fit) for fit in fits
    )
    return Finding(worst <= fitted * (1.0 + claim.tolerance), f"{words}; fitted lines: {lines}")


def figure_temperatures(
    claim: Claim,
    evidence: Evidence,
    *,
    classes: int,
    temperatures: Mapping[float, float],
    line: Sequence[float],
) -> Finding:
    """Return whether a caption's temperatures, by gamma, are the closest ones; else where they could be from.

    `line` has slope and intercept of 1/T on gamma that the paper prints for as many classes.
    """
    matches = {g: match for (_, g), match in _matching_temperatures(evidence, classes=classes).items()}
    lines = {g: 1.0 / (line[0] * g + line[1]) for g in FIGURE_GAMMAS}
    agree, words = [], []
    for gamma, printed in temperatures.items():
        if gamma not in matches:
            raise MissingEvidence(f"not run: {MATCHING} has no gamma {gamma:g} with {classes} classes")
        agree.append(abs(matches[gamma] - printed) <= claim.tolerance)
        words.append(f"gamma {gamma:g}: {matches[gamma]:.4f}")
        if agree[-1]:
            continue
        fitting = [
            f"{name} at gamma {g:g} ({values[g]:.4f})"
            for name, values in (("the printed line", lines), ("the closest temperature", matches))
            for g in FIGURE_GAMMAS
            if g in values and abs(values[g] - printed) <= claim.tolerance
        ]
        words[-1] += f" ({printed:g} agrees with {' and '.join(fitting) or 'no figure gamma'}"
        if classes == 2:
            row = evidence.row(BOUNDS, {"gamma": gamma})
            words[-1] += (
                f"; the exact bounds are [{float(row['line_low']):.4f}, {float(row['line_high']):.4f}]"
            )
        words[-1] += ")"
    return Finding(all(agree), "; ".join(words))


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


def _found(agree: Sequence[bool | None], words: str) -> Finding:
    """Return False if one part disagrees, else None if the runs leave one part open, else True."""
    if False in agree:
        return Finding(False, words)
    return Finding(None, f"undecided: {words}") if None in agree else Finding(True, words)


def _half_width(check: Check) -> float:
    """Return the half width of a check's interval: 0 if no runs were measured, NaN if one seed was.

    Over seeds it is Student's, around the value of all seeds together.
    """
    if check.half_width is not None:
        return check.half_width
    if len(check.by_seed) > 1:
        return _student(check.by_seed)
    return math.nan if check.place else 0.0


def _together(checks: Sequence[Check], numbers: Sequence[Number]) -> Number:
    """Return the mean of what was measured at several places, each weighted by its number of measurements.

    From three places on its interval is over places, which differ more than seeds; below, over seeds.
    """
    total = sum(check.n or 0 for check in checks)
    weights = [(check.n or 0) / total for check in checks]
    mean = sum(weight * number.value for weight, number in zip(weights, numbers, strict=True))
    if any(number.half_width != 0 for number in numbers):
        if len(numbers) >= FEWEST_PLACES:
            shares = [
                len(numbers) * weight * (number.value - mean) + mean
                for weight, number in zip(weights, numbers, strict=True)
            ]
            return Number(mean, _student(shares))
        parts = [weight * number.half_width for weight, number in zip(weights, numbers, strict=True)]
        return Number(mean, math.hypot(*parts))
    return Number(mean)


def _student(values: Sequence[float]) -> float:
    """Return the half width of the interval of the mean of values, by Student's t."""
    deviation = stdev(values)
    return float(stdtrit(len(values) - 1, tails(CONFIDENCE)[1])) * deviation / math.sqrt(len(values))


def _in_words(claim: Claim, number: Number) -> str:
    """Return a number with its interval."""
    if number.half_width == 0:
        return _digits(claim, number.value)
    if math.isnan(number.half_width):
        return f"{_digits(claim, number.value)} (no interval: one run)"
    return f"{_digits(claim, number.value)} ± {_digits(claim, number.half_width)}"


def _describe_check(claim: Claim, check: Check, number: Number | None = None) -> str:
    """Return a check in words, with its interval and with what single seeds alone give."""
    notes = [check.detail] if check.detail else []
    if check.n is not None:
        notes.append(f"n = {check.n}")
    if check.by_seed:
        notes.append(
            f"one seed alone: {_digits(claim, min(check.by_seed))} to {_digits(claim, max(check.by_seed))}"
        )
    name = check.name.partition("_")[2] if check.name.startswith(PAPER_PREFIXES) else check.name
    words = f"{check.place or name.replace('_', ' ')} = {_in_words(claim, number or Number(check.value))}"
    return words + (f" ({'; '.join(notes)})" if notes else "")


def _describe_outside(claim: Claim, checks: Sequence[Check]) -> str:
    """Return what was measured outside the claim's setting, grouped by the reason; nothing without any."""
    groups: dict[str, list[str]] = {}
    for check in checks:
        groups.setdefault(check.outside, []).append(f"{check.place} {_digits(claim, check.value)}")
    listed = "; ".join(f"{', '.join(places)} ({reason})" for reason, places in groups.items())
    return f"outside the setting: {listed}" if groups else ""


def _numbers(claim: Claim, evidence: Evidence, column: str, where: Where) -> dict[str, Number]:
    """Return the numbers of the chosen rows by the listed values that chose them (one row: by column)."""
    cells = _chosen_cells(claim, evidence, column, where)
    return {", ".join(chosen.values()) or column: number for chosen, number in cells}


def _series(
    claim: Claim, evidence: Evidence, column: str, where: Where, along: str, mean_over: str | None = None
) -> dict[str, dict[str, Number]]:
    """Return numbers by the value of the key `along`, for each combination of values of the other keys."""
    found: dict[str, dict[str, list[Number]]] = {}
    for chosen, number in _chosen_cells(claim, evidence, column, where):
        others = ", ".join(value for key, value in chosen.items() if key not in (along, mean_over))
        found.setdefault(others, {}).setdefault(chosen[along], []).append(number)
    return {
        others: {name: _mean(values) for name, values in numbers.items()} for others, numbers in found.items()
    }


def _chosen_cells(
    claim: Claim, evidence: Evidence, column: str, where: Where
) -> list[tuple[dict[str, str], Number]]:
    """Return each chosen row's number with the values that chose it among those listed in `where`.

    A mean over runs (`NAME_mean`) has its interval beside it (`NAME_half_width`), empty for a single seed.
    """
    interval = f"{column.removesuffix('_mean')}_half_width"
    lists = {key: values for key, values in where.items() if isinstance(values, list)}
    cells = []
    for values in product(*lists.values()):
        chosen = dict(zip(lists, values, strict=True))
        row = evidence.row(claim.table, {**where, **chosen})
        if not row[column]:
            wanted = ", ".join(map(str, {**where, **chosen}.values()))
            reason = row.get("note") or "not computed"
            raise MissingEvidence(f"{wanted} has no {column} in {claim.table}: {reason}")
        half_width = row.get(interval, "0") or "nan"
        cells.append((chosen, Number(float(row[column]), float(half_width))))
    return cells


def _mean(numbers: Sequence[Number]) -> Number:
    """Return the mean of numbers that were measured apart."""
    half_width = math.hypot(*(number.half_width for number in numbers)) / len(numbers)
    return Number(sum(number.value for number in numbers) / len(numbers), half_width)


def _matching_temperatures(evidence: Evidence, **where: Any) -> dict[tuple[int, float], float]:
    """Return the matching temperature in K24's box by class count and gamma, both ascending."""
    rows = evidence.rows(MATCHING, {**K24_BOX, **where})
    found = {(int(row["classes"]), float(row["gamma"])): float(row["temperature"]) for row in rows}
    return dict(sorted(found.items()))


def _digits(claim: Claim, number: float) -> str:
    """Return a number with four digits if it is exact and three if it is measured."""
    return f"{number:.{4 if claim.kind == 'exact' else 3}g}"


def _listed(claim: Claim, numbers: Mapping[str, Number]) -> str:
    return ", ".join(f"{name} {_in_words(claim, number)}" for name, number in numbers.items())


def _listed_series(claim: Claim, series: Mapping[str, Mapping[str, Number]]) -> str:
    texts = {others: _listed(claim, numbers) for others, numbers in series.items()}
    return "; ".join(f"{others}: {text}" if others else text for others, text in texts.items())
