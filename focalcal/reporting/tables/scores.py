"""All scores: every calibrator and criterion by every metric."""

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.products import table
from focalcal.reporting.records.measurements import SETTING
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.tables.columns import (
    CALIBRATED_NOTE,
    DATASET_MODEL,
    LOSS,
    criterion_name,
    finer,
    score_column,
    score_frame,
    seed_texts,
    spread_note,
)
from focalcal.reporting.tables.table import Column, Table
from focalcal.training.appearance import loss_order


@table(
    section="scores",
    order=30,
    heading="All scores",
    caption="Every metric on test data for every calibrator and criterion, mean and spread over seeds.",
    inputs=("metrics",),
)
def scores(sources: Sources) -> Table | None:
    """Return one row per dataset, model, loss, calibrator and criterion, and one column per metric."""
    summary = sources.scores.query("metric in @METRICS")[["mean", "std", "seeds"]]
    if summary.empty:
        return None
    fits = sorted({key[:-1] for key in summary.index}, key=_fit_order)
    frame = score_frame(summary, fits, {name: (name,) for name in METRICS})
    frame.insert(len(summary.index.names) - 1, "seeds", seed_texts(frame, METRICS))
    return Table(
        title="Test scores of every calibrator and criterion",
        frame=frame,
        columns=(
            *DATASET_MODEL,
            LOSS,
            Column("Calibrator", lambda row: METHODS[row["method"]].label),
            Column("Fitted by", lambda row: criterion_name(row["criterion"])),
            Column("n", "seeds"),
            *(
                score_column(name, metric.heading, finer(metric), ranked=False)
                for name, metric in METRICS.items()
            ),
        ),
        group=tuple(SETTING),
        notes=(
            CALIBRATED_NOTE,
            spread_note(frame, METRICS),
        ),
    )


def _fit_order(fit: tuple[str, ...]) -> tuple:
    """Return a sort key: methods and criteria in the order of the catalogue, others by name."""
    dataset, model, loss, method, criterion = fit
    known = [*METRICS, criterion]
    return dataset, model, loss_order(loss), list(METHODS).index(method), known.index(criterion), criterion
