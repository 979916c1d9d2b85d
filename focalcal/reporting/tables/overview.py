"""The suite's own score table, the overview of all settings, and the names that tables share."""

from collections.abc import Mapping

import pandas as pd

from focalcal.reporting.records.measurements import Key, Summary, loss_order
from focalcal.reporting.tables.cells import (
    GAMMA,
    SCORE_FIELDS,
    Scale,
    loss_name,
    mark_best,
    score_cell,
    seeds_cell,
    spread_note,
)
from focalcal.reporting.tables.formats import Cell, Column, Table

SCALES = {
    "ece": Scale("ECE (%)", 100, 2),
    "adaece": Scale("AdaECE (%)", 100, 2),
    "nll": Scale("Log-loss", 1, 3),
    "accuracy": Scale("Accuracy (%)", 100, 1, higher_is_better=True),
}
METHOD_NAMES = {
    "none": "as trained",
    "ts": "TS",
    "fts": "FTS",
    "fts-line": "FTS, line search",
    "fts-continuous": "FTS, continuous",
    "psi": "Ψ",
    "psi-ts": "Ψ then TS",
    "ts-psi": "TS then Ψ",
    "ts-focal": "TS by focal loss",
    "ts-focal-psi": "TS by focal loss, then Ψ",
}


def method_name(method: str) -> str:
    """Return a calibrator's name for people; an unknown one as it is."""
    return METHOD_NAMES.get(method, method)


def metric_name(metric: str) -> str:
    """Return a metric's name within a sentence, without its unit."""
    return SCALES[metric].inline.split(" (")[0]


def criterion_of(criteria: set[str], criterion: str) -> str | None:
    """Return the criterion whose fit stands for a method: none, `criterion`, the only one; else None."""
    if "" in criteria:
        return ""
    if criterion in criteria:
        return criterion
    return next(iter(criteria)) if len(criteria) == 1 else None


def chosen_fits(frame: pd.DataFrame, criterion: str) -> list[tuple[str, str]]:
    """Return (method, criterion) of the fit that stands for each method in `frame`, in the suite's order."""
    order = {method: position for position, method in enumerate(METHOD_NAMES)}
    found = []
    for method, rows in frame.groupby("method"):
        chosen = criterion_of(set(rows["criterion"]), criterion)
        if chosen is not None:
            found.append((method, chosen))
    return sorted(found, key=lambda pair: (order.get(pair[0], len(order)), pair[0]))


def overview_table(summary: Mapping[Key, Summary], metric: str, criterion: str) -> Table | None:
    """Return one row a setting: accuracy, then `metric` and log-loss as trained, after TS, FTS and Psi.

    `metric` is that of the fit chosen by `criterion`, log-loss that of the fit chosen by log-loss. Best of
    each row and metric in bold. None without any run.
    """
    blocks = [(metric, criterion)] + ([("nll", "nll")] if metric != "nll" else [])
    methods = ("none", "ts", "fts", "psi")
    groups, used = [], []
    for dataset, model in sorted({key[:2] for key in summary}):
        rows = []
        for loss in sorted({key[2] for key in summary if key[:2] == (dataset, model)}, key=loss_order):
            place = (dataset, model, loss)
            accuracy = summary.get((*place, "none", "", "accuracy"))
            scores = [
                [summary.get((*place, m, _criterion(m, chosen), name)) for m in methods]
                for name, chosen in blocks
            ]
            flat = [score for block in scores for score in block if score is not None]
            if not flat:
                continue
            used += flat
            cells = [Cell(dataset), Cell(model), Cell(loss_name(loss)), Cell(loss), seeds_cell(flat)]
            cells.append(score_cell(accuracy, SCALES["accuracy"]))
            for (name, _), block in zip(blocks, scores, strict=True):
                fits = ["", "T", "gamma T", ""]
                shown = [score_cell(s, SCALES[name], fit) for s, fit in zip(block, fits, strict=True)]
                cells += mark_best(shown, SCALES[name])
            rows.append(tuple(cells))
        if rows:
            groups.append(tuple(rows))
    if not groups:
        return None
    columns = [
        Column("dataset", "Dataset", merge=True),
        Column("model", "Model", merge=True),
        Column("loss_name", "Training loss"),
        Column("loss", "Loss id", hidden=True),
        Column("seeds", "n"),
        Column("accuracy", "Accuracy (%)", SCORE_FIELDS),
    ]
    for name, _ in blocks:
        columns += [
            Column(f"{name}_{m}", method_name(m), SCORE_FIELDS, span=SCALES[name].label, ranked=True)
            for m in methods
        ]
    return Table(
        name="overview",
        title="Test scores as trained, after temperature scaling (TS), focal temperature scaling (FTS) and Ψ",
        columns=tuple(columns),
        groups=tuple(groups),
        notes=(
            f"{metric_name(metric).capitalize() if metric == 'nll' else metric_name(metric)} is that of the "
            f"fit chosen by validation {metric_name(criterion)}"
            + (", log-loss that of the fit chosen by validation log-loss." if len(blocks) > 1 else "."),
            f"In brackets the {GAMMA} of the map, or its range over seeds, and the mean temperature.",
            "Ψ is applied where the loss tells its gamma; for cross-entropy it is the identity.",
            "Best of each row and metric in bold, ties at the shown digits included.",
            spread_note(used),
        ),
    )


def empty_table(name: str, title: str) -> Table:
    """Return a table without rows that says so, for what the runs at hand cannot fill."""
    columns = (Column("dataset", "Dataset"), Column("model", "Model"), Column("loss", "Loss"))
    return Table(name, title, columns, (), ("No run at hand has the scores that this table shows.",))


def _criterion(method: str, criterion: str) -> str:
    return "" if method in {"none", "psi"} else criterion
