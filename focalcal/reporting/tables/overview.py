"""One row per dataset, model and training loss: scores as trained and after each shown calibrator."""

from collections.abc import Iterator, Sequence

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.products import table
from focalcal.reporting.records.measurements import SETTING, chosen_fits, sorted_settings
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.tables.columns import (
    BRACKETS_NOTE,
    DATASET_MODEL,
    is_fitted,
    mark_best,
    score_column,
    score_frame,
    seed_texts,
    spread_note,
    with_scores,
)
from focalcal.reporting.tables.table import Column, Table
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
    metrics = sources.metrics
    blocks = {sources.metric: sources.criterion}
    if "nll" in set(metrics["criterion"]):
        blocks.setdefault("nll", "nll")
    fits = {
        f"{name}_{method}": (method, criterion, name)
        for name, chosen_by in blocks.items()
        for method, criterion in chosen_fits(metrics[metrics["metric"] == name], chosen_by)
        if METHODS[method].shown
    }
    accuracy = {"accuracy": ("none", "", "accuracy")}
    frame = score_frame(sources.scores, sorted_settings(sources.scores), accuracy | fits, ranked=fits)
    frame = with_scores(frame, fits)
    if frame.empty:
        return None
    for name in blocks:
        mark_best(frame, [key for key in fits if fits[key][-1] == name], METRICS[name], by=SETTING)
    frame.insert(2, "loss_name", frame["loss"].map(loss_label))
    frame.insert(4, "seeds", seed_texts(frame, fits))
    methods = [method for method, _, name in fits.values() if name == sources.metric]
    return Table(
        title="Test scores as trained and after calibration",
        frame=frame,
        columns=(
            *DATASET_MODEL,
            Column("Training loss", "loss_name"),
            Column("n", "seeds"),
            score_column("accuracy", METRICS["accuracy"].heading, METRICS["accuracy"], ranked=False),
            *(
                score_column(
                    key,
                    METHODS[method].label,
                    METRICS[name],
                    fitted=is_fitted(method),
                    span=METRICS[name].heading,
                )
                for key, (method, _, name) in fits.items()
            ),
        ),
        group=("dataset", "model"),
        notes=(
            f"Calibrators: {', '.join(METHODS[method].name for method in methods)}.",
            *(
                f"{METRICS[name].label} is that of the fit chosen by validation {METRICS[criterion].name}."
                for name, criterion in blocks.items()
            ),
            BRACKETS_NOTE,
            *([PSI_NOTE] if "psi" in methods else []),
            *_changed_class_note(methods),
            "Best of each row and metric in bold, ties at the shown digits included.",
            spread_note(frame, fits),
        ),
    )


def _changed_class_note(methods: Sequence[str]) -> Iterator[str]:
    """Yield which calibrators can change the predicted class, if any."""
    names = [METHODS[method].label for method in methods if METHODS[method].changes_predictions]
    if names:
        yield f"Accuracy is that of the network; {', '.join(names)} can change the predicted class."
