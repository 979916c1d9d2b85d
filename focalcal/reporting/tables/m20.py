"""Our scores in the layouts of M20 Tables 1-13, above M20's numbers where it prints the same cell."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from focalcal.calibration.catalogue import METRICS, Metric
from focalcal.reporting.products import table
from focalcal.reporting.records.measurements import Summary
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.tables.cells import (
    DATASET_MODEL,
    SCORE_FIELDS,
    Cells,
    Footnotes,
    cell,
    difference_from,
    is_fitted,
    mark_best,
    number_column,
    printed_numbers,
    printed_text,
    score_cell,
    seeds_text,
    spread_note,
)
from focalcal.reporting.tables.table import Column, Table, frame_of
from focalcal.training.appearance import loss_label, loss_order

STAGES = {"pre": "Pre T", "post": "Post T"}


@dataclass(frozen=True)
class ShownColumn:
    """A column of M20's tables: a loss before or after temperature scaling, and the score behind it."""

    loss: str
    stage: str
    method: str
    criterion: str
    metric: Metric

    @property
    def key(self) -> str:
        """Return its name in the CSV."""
        return f"{self.loss}_{self.stage}"

    @property
    def fit(self) -> tuple[str, str, str, str]:
        """Return loss, method, criterion and metric of its scores."""
        return self.loss, self.method, self.criterion, self.metric.id


@table(
    page="calibration",
    order=82,
    heading="ECE, layout of M20 Tables 1, 4 and 7",
    caption="Before and after temperature scaling, by training loss.",
    inputs=("metrics",),
)
def m20_ece(sources: Sources) -> Table | None:
    """Return ECE before and after temperature scaling."""
    return _m20_table(sources, METRICS["ece"], "1, 4 and 7")


@table(
    page="calibration",
    order=83,
    heading="AdaECE, layout of M20 Tables 2, 5 and 8",
    caption="Before and after temperature scaling, by training loss.",
    inputs=("metrics",),
)
def m20_adaece(sources: Sources) -> Table | None:
    """Return AdaECE before and after temperature scaling, T chosen by AdaECE as in M20."""
    return _m20_table(sources, METRICS["adaece"], "2, 5 and 8")


@table(
    page="training",
    order=70,
    heading="Test error, layout of M20 Tables 3 and 9",
    caption="By training loss; temperature scaling does not change it.",
    inputs=("metrics",),
)
def m20_error(sources: Sources) -> Table | None:
    """Return the test error, which scaling does not change."""
    return _m20_table(sources, METRICS["error"], "3 and 9", stages=("pre",))


@table(
    page="calibration",
    order=84,
    heading="Log-loss, layout of M20 Tables 10 and 11",
    caption="Before and after temperature scaling, by training loss.",
    inputs=("metrics",),
)
def m20_nll(sources: Sources) -> Table | None:
    """Return log-loss in M20's unit before and after temperature scaling."""
    return _m20_table(sources, replace(METRICS["nll"], label="NLL", factor=100, decimals=2), "10 and 11")


@table(
    page="calibration",
    order=85,
    heading="MCE, layout of M20 Tables 12 and 13",
    caption="Before and after temperature scaling, by training loss.",
    inputs=("metrics",),
)
def m20_mce(sources: Sources) -> Table | None:
    """Return MCE before and after temperature scaling."""
    return _m20_table(sources, METRICS["mce"], "12 and 13")


@table(
    page="calibration",
    order=86,
    heading="Share of very confident predictions, layout of M20 Table 6",
    caption="Test samples predicted with confidence above 0.99, by training loss.",
    inputs=("metrics",),
)
def m20_s99_share(sources: Sources) -> Table | None:
    """Return the share of very confident predictions before and after temperature scaling."""
    return _m20_table(sources, METRICS["s99_share"], "6")


@table(
    page="calibration",
    order=87,
    heading="Accuracy of very confident predictions, layout of M20 Table 6",
    caption="Accuracy on test samples predicted with confidence above 0.99, by training loss.",
    inputs=("metrics",),
)
def m20_s99_accuracy(sources: Sources) -> Table | None:
    """Return the accuracy of very confident predictions before and after temperature scaling."""
    return _m20_table(sources, METRICS["s99_accuracy"], "6")


def _m20_table(
    sources: Sources, metric: Metric, tables: str, stages: tuple[str, ...] = ("pre", "post")
) -> Table | None:
    """Return one row per dataset and model and one column per loss and stage, ours above M20's.

    T is chosen by validation ECE, for AdaECE by validation AdaECE. None without a run that has these scores.
    """
    scores, footnotes = sources.scores, Footnotes()
    criterion = "adaece" if metric.id == "adaece" else "ece"
    fits = {"pre": ("none", ""), "post": ("ts", criterion)}
    shown = [
        ShownColumn(loss, stage, *fits[stage], metric)
        for loss in sorted({key[2] for key in scores}, key=loss_order)
        for stage in stages
    ]
    rows, used = [], []
    for dataset_model in sorted({key[:2] for key in scores}):
        found = [scores.get((*dataset_model, *column.fit)) for column in shown]
        papers = [sources.published.get(("M20", *dataset_model, *column.fit)) for column in shown]
        if any(found):
            used += [score for score in found if score is not None]
            rows += _m20_rows(dataset_model, shown, found, papers, footnotes)
    if not rows:
        return None
    return Table(
        title=f"{metric.heading} by training loss (layout of M20 Table{'s' * (' ' in tables)} {tables})",
        frame=frame_of(rows),
        columns=(
            *DATASET_MODEL,
            Column("Source", "source"),
            Column("n", "seeds"),
            *(
                number_column(column.key, STAGES[column.stage], span=loss_label(column.loss), ranked=True)
                for column in shown
            ),
        ),
        group=lambda row: (row["dataset"], row["model"]),
        notes=(
            (
                "Pre T: as trained; post T: after temperature scaling, T in brackets, chosen by validation "
                f"{METRICS[criterion].name}."
            ),
            "Best of our row in bold, before and after scaling separately.",
            spread_note(used),
            *(["M20 prints no spread over seeds."] if any(row["source"] == "M20" for row in rows) else []),
            *footnotes.notes(),
        ),
    )


def _m20_rows(
    dataset_model: tuple[str, str],
    shown: Sequence[ShownColumn],
    scores: Sequence[Summary | None],
    papers: Sequence[pd.Series | None],
    footnotes: Footnotes,
) -> list[Cells]:
    """Return our row and, if M20 prints any of its cells, M20's row and the row of differences."""
    names = dict(zip(("dataset", "model"), dataset_model, strict=True))
    ours = {**names, "source": "ours", "seeds": seeds_text(scores)}
    printed = {**names, "source": "M20", "seeds": ""}
    differences = {**names, "source": "difference", "seeds": ""}
    for column, score, paper in zip(shown, scores, papers, strict=True):
        fitted = is_fitted(column.method)
        ours |= score_cell(column.key, score, column.metric, fitted=fitted) | {f"{column.key}_best": None}
        printed |= _printed_cell(column.key, paper, footnotes, fitted=fitted)
        text, difference = difference_from(paper, score, column.metric)
        numbers = None if difference is None else (difference, 0)
        differences |= cell(column.key, text, ("mean", "best"), numbers)
    for stage in STAGES:
        marked = [(ours, column.key) for column in shown if column.stage == stage]
        mark_best(marked, shown[0].metric)
    return [ours, printed, differences] if any(paper is not None for paper in papers) else [ours]


def _printed_cell(key: str, paper: pd.Series | None, footnotes: Footnotes, *, fitted: bool) -> Cells:
    """Return M20's number in the fields of a score."""
    fields = (*SCORE_FIELDS, "best")
    if paper is None:
        return cell(key, "", fields, None)
    mean, std, temperature, gamma = printed_numbers(paper)
    text = printed_text(paper, footnotes, fitted=fitted)
    return cell(key, text, fields, (mean, std, None, temperature, gamma, gamma, 0))
