"""Evaluators of claims on the papers' own printed tables, which need no runs.

They read the transcribed cells. A row is a dataset and model; a cell of it is named by `loss`, `method`,
`criterion` and `metric`. A name that is left out stands for all printed ones, a list for each of its values.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from typing import Any

from focalcal.reporting.claims.evidence import Claim, Evidence, Finding, MissingEvidence
from focalcal.theory.matching import match_temperature
from focalcal.training.catalogue import training_gamma

ROW = ("dataset", "model")
CELL = ("loss", "method", "criterion", "metric")
MOST_LISTED = 6
Cell = Mapping[str, Any]
"""What names cells: by column, a value or a list of values."""


def printed_lower(claim: Claim, evidence: Evidence, *, lower: Cell, than: Cell, bound: float) -> Finding:
    """Return whether the first cells are below the second ones in a share of at least `bound` of all cases.

    A case is a row and a first cell; it counts if the cell is below every second one of the row. Names that
    `than` leaves out are those of the first cell.
    """
    cases = {}
    for row, cells in _rows(claim, evidence).items():
        for first in _names(lower, cells):
            others = _names({**dict(zip(CELL, first, strict=True)), **than}, cells)
            if others:
                cases[row, first] = all(cells[first] < cells[other] for other in others)
    if not cases:
        raise MissingEvidence(f"{claim.table} prints no such cells")
    lost = [_case(*case, lower) for case, won in cases.items() if not won]
    words = f"{len(cases) - len(lost)} of {len(cases)} printed cells"
    if lost:
        words += f"; not {_few(lost)}"
    return Finding(len(cases) - len(lost) >= bound * len(cases), words)


def printed_within(
    claim: Claim, evidence: Evidence, *, cells: Cell, column: str, low: float, high: float, share: float = 1.0
) -> Finding:
    """Return whether a column of printed cells lies in [low, high], in a share of at least `share`."""
    rows = _rows(claim, evidence, column)
    found = {(row, name): numbers[name] for row, numbers in rows.items() for name in _names(cells, numbers)}
    if not found:
        raise MissingEvidence(f"{claim.table} prints no such cells")
    outside = [
        f"{_case(*case, cells)} {number:g}"
        for case, number in found.items()
        if not low - claim.tolerance <= number <= high + claim.tolerance
    ]
    words = f"{min(found.values()):g} to {max(found.values()):g} in {len(found)} printed cells"
    if outside:
        words += f"; {len(outside)} outside: {_few(outside)}"
    return Finding(len(found) - len(outside) >= share * len(found), words)


def printed_falls(
    claim: Claim, evidence: Evidence, *, cells: Cell, column: str, along: Sequence[str], share: float
) -> Finding:
    """Return whether a column falls from one loss of `along` to the next, in a share of at least `share`."""
    series, steps = [], []
    for row, numbers in _rows(claim, evidence, column).items():
        found = {name[0]: numbers[name] for name in _names({**cells, "loss": list(along)}, numbers)}
        values = [found[loss] for loss in along if loss in found]
        steps += [later < earlier for earlier, later in pairwise(values)]
        series.append(f"{'/'.join(row)} {', '.join(f'{value:g}' for value in values)}")
    if not steps:
        raise MissingEvidence(f"{claim.table} prints no such cells")
    words = f"falls in {sum(steps)} of {len(steps)} printed steps: {'; '.join(series)}"
    return Finding(sum(steps) >= share * len(steps), words)


def printed_change(
    claim: Claim, evidence: Evidence, *, cells: Cell, against: Cell, largest: float
) -> Finding:
    """Return whether cells exceed others of their row, whose names they share, by at most `largest`."""
    changes = {}
    for row, numbers in _rows(claim, evidence).items():
        for first in _names(cells, numbers):
            for second in _names({**dict(zip(CELL, first, strict=True)), **against}, numbers):
                changes[row, first] = numbers[first] - numbers[second]
    if not changes:
        raise MissingEvidence(f"{claim.table} prints no such cells")
    higher, lower = (sum(sign * change > 0 for change in changes.values()) for sign in (1, -1))
    worst = max(changes, key=changes.__getitem__)
    words = (
        f"higher in {higher} and lower in {lower} of {len(changes)} printed cells; "
        f"at most {changes[worst]:+.3g} ({_case(*worst, cells)})"
    )
    return Finding(changes[worst] <= largest + claim.tolerance, words)


def printed_composition(claim: Claim, evidence: Evidence, *, classes: Mapping[str, int]) -> Finding:
    """Return whether T of every focal loss is T of cross-entropy times the matching temperature.

    The tolerance is that of their ratio; `classes` gives the number of classes of each dataset to judge.
    """
    ratios = {}
    for row, numbers in _rows(claim, evidence, "temperature").items():
        for name in _names({"method": "ts"}, numbers) if row[0] in classes else []:
            gamma = training_gamma(name[0])
            reference = numbers.get(("ce", *name[1:]))
            if gamma and reference:
                match, _ = match_temperature(gamma, classes[row[0]])
                ratios[f"{row[0]} {name[0]} by {name[2]}"] = numbers[name], reference * match
    if not ratios:
        raise MissingEvidence(f"{claim.table} prints no such cells")
    agree = [abs(printed / product - 1.0) <= claim.tolerance for printed, product in ratios.values()]
    listed = ", ".join(f"{name} {printed:g} for {product:.2f}" for name, (printed, product) in ratios.items())
    return Finding(all(agree), f"{sum(agree)} of {len(agree)} printed temperatures: {listed}")


def _rows(
    claim: Claim, evidence: Evidence, column: str = "value"
) -> dict[tuple[str, ...], dict[tuple[str, ...], float]]:
    """Return the printed numbers by row, then by `CELL`; cells without a number are left out."""
    rows: dict[tuple[str, ...], dict[tuple[str, ...], float]] = {}
    for cell in evidence.table(claim.table):
        if cell[column]:
            row = rows.setdefault(tuple(cell[name] for name in ROW), {})
            row[tuple(cell[name] for name in CELL)] = float(cell[column])
    return rows


def _names(cell: Cell, printed: Mapping[tuple[str, ...], float]) -> list[tuple[str, ...]]:
    """Return the names of those cells of a row that are printed."""
    choices = [_listed_values(cell, name, printed) for name in CELL]
    return [name for name in product(*choices) if name in printed]


def _case(row: Sequence[str], name: Sequence[str], cell: Cell) -> str:
    """Return a printed cell in words: row and loss, and method and metric where a list names several."""
    varying = [name[CELL.index(key)] for key in ("method", "metric") if isinstance(cell.get(key), list)]
    return " ".join(["/".join(row), name[0], *varying])


def _listed_values(cell: Cell, name: str, printed: Mapping[tuple[str, ...], float]) -> Sequence[str]:
    """Return the values that a cell allows for one part of its name: all printed ones if it says nothing."""
    if name not in cell:
        return list(dict.fromkeys(key[CELL.index(name)] for key in printed))
    return cell[name] if isinstance(cell[name], list) else [cell[name]]


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return ", ".join(names[:MOST_LISTED]) + more
