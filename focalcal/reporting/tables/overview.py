"""One row per dataset, model and training loss: scores as trained and after each shown calibrator."""

from collections.abc import Iterator, Sequence

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.products import table
from focalcal.reporting.records.measurements import LEADING, chosen_fits, sorted_settings
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.tables.columns import (
    BRACKETS_NOTE,
    CALIBRATED_NOTE,
    DATASET_MODEL,
    finer,
    is_fitted,
    score_column,
    score_frame,
    seed_texts,
    spread_note,
    with_scores,
)
from focalcal.reporting.tables.table import Column, Table
from focalcal.training.appearance import loss_label

REFERENCE = "ts"
"""The calibrator whose confidences a perfectly calibrated model is imagined with."""
PSI_NOTE = "Ψ is applied if the loss has one known gamma; for cross-entropy it is the identity."


@table(
    section="losses",
    order=30,
    heading="All settings at a glance",
    caption="Test scores as trained and after calibration, one row per dataset, model and training loss.",
    inputs=("metrics",),
    settings=("metric", "criterion"),
)
def overview(sources: Sources) -> Table | None:
    """Return accuracy, then log-loss and the report's metric, as trained and after each shown calibrator.

    Log-loss is that of calibrators fitted by log-loss, the metric that of those fitted by the report's
    criterion. Beside a binned error stands what TS would have if it were calibrated.
    """
    metrics = sources.metrics
    blocks = {LEADING: LEADING if LEADING in set(metrics["criterion"]) else sources.criterion}
    blocks.setdefault(sources.metric, sources.criterion)
    fits = {
        f"{name}_{method}": (method, criterion, name)
        for name, chosen_by in blocks.items()
        for method, criterion in chosen_fits(metrics[metrics["metric"] == name], chosen_by)
        if METHODS[method].shown
    }
    beside = {"accuracy": ("none", "", "accuracy")}
    calibrated = f"{sources.metric}_perfect"
    if f"{sources.metric}_{REFERENCE}" in fits and calibrated in METRICS:
        beside[calibrated] = (REFERENCE, fits[f"{sources.metric}_{REFERENCE}"][1], calibrated)
    frame = score_frame(sources.scores, sorted_settings(sources.scores.index), beside | fits)
    frame = with_scores(frame, fits)
    if frame.empty:
        return None
    frame.insert(2, "loss_name", frame["loss"].map(loss_label))
    frame.insert(4, "seeds", seed_texts(frame, fits))
    methods = [method for method, _, name in fits.values() if name == sources.metric]
    reference = [
        score_column(
            calibrated,
            f"{METHODS[REFERENCE].label} if calibrated",
            METRICS[calibrated],
            span=METRICS[sources.metric].heading,
            ranked=False,
        )
        for calibrated in beside.keys() - {"accuracy"}
    ]
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
                    finer(METRICS[name]),
                    fitted=is_fitted(method),
                    span=METRICS[name].heading,
                    ranked=False,
                )
                for key, (method, _, name) in fits.items()
            ),
            *reference,
        ),
        group=("dataset", "model"),
        notes=(
            f"Calibrators: {', '.join(METHODS[method].name for method in methods)}.",
            *(
                f"{METRICS[name].label} is that of fits by validation {METRICS[criterion].name}."
                for name, criterion in blocks.items()
            ),
            BRACKETS_NOTE,
            *([CALIBRATED_NOTE] if reference else []),
            *([PSI_NOTE] if "psi" in methods else []),
            *_changed_class_note(methods),
            spread_note(frame, fits),
        ),
    )


def _changed_class_note(methods: Sequence[str]) -> Iterator[str]:
    """Yield which calibrators can change the predicted class, if any."""
    names = [METHODS[method].label for method in methods if METHODS[method].changes_predictions]
    if names:
        yield f"Accuracy is that of the network; {', '.join(names)} can change the predicted class."
