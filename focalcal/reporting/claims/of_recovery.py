"""Evaluators of C21's statements about experiments: each reads a table of the recovery stage.

C21's numbers belong to networks trained for as long as C21 did: shorter trainings are no evidence.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol

from focalcal.reporting.claims.evidence import Evidence, Finding, MissingEvidence

FOLDER = "results/tables"
EPOCHS = {"cifar10": 200, "cifar10-s": 200, "svhn": 50}
"""How long C21 trained."""


class _Claim(Protocol):
    tolerance: float


def recovery_at_most(
    claim: _Claim, evidence: Evidence, *, table: str, column: str, where: Mapping[str, Any], bound: float
) -> Finding:
    """Return whether a column's mean is at most `bound` in every row that `where` chooses."""
    values = _means(evidence, table, column, where)
    return Finding(max(values.values()) <= bound + claim.tolerance, _listed(values))


def recovery_at_least(
    claim: _Claim, evidence: Evidence, *, table: str, column: str, where: Mapping[str, Any], bound: float
) -> Finding:
    """Return whether a column's mean is at least `bound` in every row that `where` chooses."""
    values = _means(evidence, table, column, where)
    return Finding(min(values.values()) >= bound - claim.tolerance, _listed(values))


def recovery_spread(
    claim: _Claim, evidence: Evidence, *, table: str, column: str, where: Mapping[str, Any], bound: float
) -> Finding:
    """Return whether the means of a column differ by at most `bound` between the rows of `where`."""
    values = _means(evidence, table, column, where)
    spread = max(values.values()) - min(values.values())
    return Finding(spread <= bound + claim.tolerance, f"spread {spread:.3g}: {_listed(values)}")


def recovery_rises(
    claim: _Claim, evidence: Evidence, *, table: str, column: str, where: Mapping[str, Any]
) -> Finding:
    """Return whether the mean of a column rises along the losses that `where` lists."""
    values = _means(evidence, table, column, where)
    return Finding(_rising(list(values.values()), claim.tolerance), _listed(values))


def recovery_ratio(
    claim: _Claim,
    evidence: Evidence,
    *,
    table: str,
    column: str,
    where: Mapping[str, Any],
    methods: Sequence[str],
    bound: float,
) -> Finding:
    """Return whether the first method's mean is at least `bound` times the second's, for every loss."""
    first, second = (_means(evidence, table, column, {**where, "method": method}) for method in methods)
    agrees = all(first[loss] >= (bound - claim.tolerance) * second[loss] for loss in first)
    pairs = [f"{loss} {first[loss]:.3g} against {second[loss]:.3g}" for loss in first]
    return Finding(agrees, ", ".join(pairs))


def recovery_best_gamma(
    claim: _Claim, evidence: Evidence, *, where: Mapping[str, Any], losses: Sequence[str], best: str
) -> Finding:
    """Return whether `best` has the lowest ECE as trained of the losses."""
    values = _means(evidence, "recovery_paradigms", "ece_raw", {**where, "loss_id": losses})
    lowest = min(values.values())
    return Finding(values[best] <= lowest + claim.tolerance, _listed(values))


def recovery_degrades(
    claim: _Claim, evidence: Evidence, *, where: Mapping[str, Any], paradigms: Sequence[str]
) -> Finding:
    """Return whether ECE-raw is higher in the second paradigm than in the first, for every loss."""
    before, after = (
        _means(evidence, "recovery_paradigms", "ece_raw", {**where, "paradigm": paradigm})
        for paradigm in paradigms
    )
    changes = {loss: after[loss] - before[loss] for loss in before}
    return Finding(min(changes.values()) > -claim.tolerance, f"change of ECE: {_listed(changes)}")


def recovery_effect_falls(
    claim: _Claim, evidence: Evidence, *, places: Sequence[Sequence[str]], losses: Sequence[str]
) -> Finding:
    """Return whether what Psi takes off the ECE, mean over losses, falls along places (dataset, model)."""
    effects = {}
    for dataset, model in places:
        where = {"paradigm": "Standard", "dataset": dataset, "model": model, "loss_id": losses}
        changes = _means(evidence, "recovery_paradigms", "difference", where)
        effects[f"{dataset}/{model}"] = sum(changes.values()) / len(changes)
    rising = _rising(list(effects.values()), claim.tolerance)
    return Finding(rising, f"ECE-Psi less ECE-raw: {_listed(effects)}")


def _means(evidence: Evidence, table: str, column: str, where: Mapping[str, Any]) -> dict[str, float]:
    """Return the means of a column by loss, for each loss that `where` lists under `loss_id`."""
    fixed = {key: value for key, value in where.items() if key != "loss_id"}
    path = f"{FOLDER}/{table}.csv"
    found = {}
    for loss in where["loss_id"]:
        _require_training(evidence, {**fixed, "loss": loss})
        row = evidence.row(path, {**fixed, "loss_id": loss})
        if not row[f"{column}_mean"]:
            raise MissingEvidence(f"{loss} has no {column} in {path}: {row['note'] or 'not computed'}")
        found[loss] = float(row[f"{column}_mean"])
    return found


def _require_training(evidence: Evidence, where: Mapping[str, Any]) -> None:
    """Raise MissingEvidence where a run of `where` was trained here, for fewer epochs than C21's."""
    needed = EPOCHS.get(where.get("dataset"))
    if needed is None:
        return
    place = {key: where[key] for key in ("dataset", "model", "loss")}
    for run in evidence.table(f"{FOLDER}/runs.csv"):
        if place.items() <= run.items() and run["epochs"] and int(run["epochs"]) < needed:
            raise MissingEvidence(
                f"{'/'.join(place.values())} was trained for {run['epochs']} epochs, C21's for {needed}"
            )


def _rising(values: Sequence[float], tolerance: float) -> bool:
    return all(later > earlier - tolerance for earlier, later in pairwise(values))


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in values.items())
