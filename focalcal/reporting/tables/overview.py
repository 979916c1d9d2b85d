"""One row per dataset, model and training loss: scores as trained and after each shown calibrator."""

from collections.abc import Mapping, Sequence

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.products import table
from focalcal.reporting.records.measurements import Key, Summary, chosen_fits, sorted_settings
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.tables.cells import (
    BRACKETS_NOTE,
    DATASET_MODEL,
    Cells,
    is_fitted,
    mark_best,
    number_column,
    score_cell,
    seeds_text,
    spread_note,
)
from focalcal.reporting.tables.table import Column, Table, frame_of
from focalcal.training.appearance import loss_label

PSI_NOTE = "Ψ is applied if the loss has one known gamma; for cross-entropy it is the identity."


@table(
    page="overview",
    order=70,
    heading="All settings at a glance",
    caption="Test scores as trained and after calibration, one row per dataset, model and training loss.",
    inputs=("metrics",),
)
def overview(sources: Sources) -> Table | None:
    """Return accuracy, then the report's metric and log-loss, as trained and after each shown calibrator.

    The metric is that of the fit chosen by the report's criterion, log-loss that of the fit chosen by
    log-loss.
    """
    frame = sources.metrics
    blocks = {sources.metric: sources.criterion}
    if "nll" in set(frame["criterion"]):
        blocks.setdefault("nll", "nll")
    fits = {
        name: [
            pair for pair in chosen_fits(frame[frame["metric"] == name], chosen_by) if METHODS[pair[0]].shown
        ]
        for name, chosen_by in blocks.items()
    }
    rows, used = [], []
    for setting in sorted_settings(sources.scores):
        found = {
            (name, method): score
            for name, pairs in fits.items()
            for method, criterion in pairs
            if (score := sources.scores.get((*setting, method, criterion, name))) is not None
        }
        if found:
            used += found.values()
            rows.append(_overview_row(setting, found, fits, sources.scores))
    if not rows:
        return None
    methods = [method for method, _ in fits[sources.metric]]
    return Table(
        title="Test scores as trained and after calibration",
        frame=frame_of(rows),
        columns=(
            *DATASET_MODEL,
            Column("Training loss", "loss_name"),
            Column("n", "seeds"),
            number_column("accuracy", METRICS["accuracy"].heading),
            *(
                number_column(
                    f"{name}_{method}", METHODS[method].label, span=METRICS[name].heading, ranked=True
                )
                for name, pairs in fits.items()
                for method, _ in pairs
            ),
        ),
        group=lambda row: (row["dataset"], row["model"]),
        notes=(
            f"Calibrators: {', '.join(METHODS[method].name for method in methods)}.",
            *(
                f"{METRICS[name].label} is that of the fit chosen by validation {METRICS[criterion].name}."
                for name, criterion in blocks.items()
            ),
            BRACKETS_NOTE,
            *([PSI_NOTE] if "psi" in methods else []),
            "Best of each row and metric in bold, ties at the shown digits included.",
            spread_note(used),
        ),
    )


def _overview_row(
    setting: tuple[str, str, str],
    found: Mapping[tuple[str, str], Summary],
    fits: Mapping[str, Sequence[tuple[str, str]]],
    scores: Mapping[Key, Summary],
) -> Cells:
    """Return a setting's scores by metric and method, the best of each metric marked."""
    dataset, model, loss = setting
    row = {
        "dataset": dataset,
        "model": model,
        "loss_name": loss_label(loss),
        "loss": loss,
        "seeds": seeds_text(found.values()),
        **score_cell("accuracy", scores.get((*setting, "none", "", "accuracy")), METRICS["accuracy"]),
    }
    for name, pairs in fits.items():
        metric = METRICS[name]
        for method, _ in pairs:
            key = f"{name}_{method}"
            row |= score_cell(key, found.get((name, method)), metric, fitted=is_fitted(method))
            row[f"{key}_best"] = None
        mark_best([(row, f"{name}_{method}") for method, _ in pairs], metric)
    return row
