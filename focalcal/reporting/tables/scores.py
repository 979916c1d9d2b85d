"""All scores: every calibrator and criterion by every metric."""

from itertools import groupby

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.products import table
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.tables.cells import (
    DATASET_MODEL,
    Cells,
    cell,
    criterion_name,
    mark_best,
    number_column,
    score_text,
    spread_note,
)
from focalcal.reporting.tables.table import Column, Table, frame_of
from focalcal.training.appearance import loss_label, loss_order

FIELDS = ("mean", "std", "seeds", "best")


@table(
    page="calibration",
    order=95,
    heading="All scores",
    caption="Every metric on test data for every calibrator and criterion, mean and spread over seeds.",
    inputs=("metrics",),
)
def scores(sources: Sources) -> Table | None:
    """Return one row per dataset, model, loss, calibrator and criterion, and one column per metric."""
    summaries = {key: score for key, score in sources.scores.items() if key[-1] in METRICS}
    if not summaries:
        return None
    rows = []
    for fit in sorted({key[:-1] for key in summaries}, key=_fit_order):
        dataset, model, loss, method, criterion = fit
        row = {
            "dataset": dataset,
            "model": model,
            "loss": loss,
            "_loss": loss_label(loss),
            "method": method,
            "_method": METHODS[method].label,
            "criterion": criterion,
            "_criterion": criterion_name(criterion),
        }
        for name, metric in METRICS.items():
            score = summaries.get((*fit, name))
            text = "" if score is None else score_text(score, metric)
            row |= cell(name, text, FIELDS, score and (score.mean, score.std, score.seeds, 0))
        rows.append(row)
    for _, members in groupby(rows, _setting):
        group = list(members)
        for name, metric in METRICS.items():
            mark_best([(row, name) for row in group], metric)
    return Table(
        title="Test scores of every calibrator and criterion",
        frame=frame_of(rows),
        columns=(
            *DATASET_MODEL,
            Column("Training loss", "_loss", merge=True),
            Column("Calibrator", "_method"),
            Column("Chosen by", "_criterion"),
            *(number_column(name, metric.heading, ranked=True) for name, metric in METRICS.items()),
        ),
        group=_setting,
        notes=(
            "Best of each dataset, model, loss and metric in bold, ties at the shown digits included.",
            spread_note(summaries.values()),
        ),
    )


def _fit_order(fit: tuple[str, ...]) -> tuple:
    dataset, model, loss, method, criterion = fit
    return dataset, model, loss_order(loss), list(METHODS).index(method), _criterion_order(criterion)


def _criterion_order(criterion: str) -> tuple[int, str]:
    """Return a sort key: criteria in the order of the metrics, others by name."""
    known = list(METRICS)
    return (known.index(criterion) if criterion in METRICS else len(known)), criterion


def _setting(row: Cells) -> tuple[str, str, str]:
    return row["dataset"], row["model"], row["loss"]
