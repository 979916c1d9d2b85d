"""Our scores in the layout of K24 Table 1, with K24's numbers beside them where it prints the same cell."""

from dataclasses import replace
from itertools import groupby

from focalcal.calibration.catalogue import METRICS
from focalcal.reporting.products import table
from focalcal.reporting.records.measurements import Key, Summary, sorted_settings
from focalcal.reporting.records.published import Published
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.tables.cells import (
    BRACKETS_NOTE,
    DATASET_MODEL,
    PRINTED_FIELDS,
    Cells,
    Footnotes,
    cell,
    difference_from,
    mark_best,
    number_column,
    printed_numbers,
    printed_text,
    score_cell,
    seeds_text,
    spread_note,
    value_cell,
)
from focalcal.reporting.tables.table import Column, Table, frame_of
from focalcal.training.appearance import GAMMA, loss_label

CHOSEN_BY = {"accuracy": "adaece", "nll": "nll", "adaece": "adaece"}
"""K24's metrics, each with the criterion of the fit whose score is shown; accuracy is the same for all."""
SHOWN = {name: METRICS[name] for name in CHOSEN_BY} | {
    "adaece": replace(METRICS["adaece"], label="ECE, equal mass")
}

PUBLISHED_NOTE = "K24: 5 seeds, ResNet-50; it prints one gamma per row, whatever the column's criterion."


@table(
    page="calibration",
    order=80,
    heading="Layout of K24 Table 1",
    caption="Temperature scaling and focal temperature scaling by training loss.",
    inputs=("metrics",),
)
def k24_table1(sources: Sources) -> Table | None:
    """Return one row per loss with TS and, below it, `+ gamma` with FTS; None without such scores."""
    scores, footnotes, rows, used = sources.scores, Footnotes(), [], []
    for setting in sorted_settings(scores):
        for method in ("ts", "fts"):
            keys = [(*setting, method, CHOSEN_BY[metric], metric) for metric in CHOSEN_BY]
            found = [scores.get(key) for key in keys]
            used += [score for score in found if score is not None]
            if any(found):
                rows.append(_k24_row(keys, found, sources.published, footnotes))
    if not rows:
        return None
    for _, members in groupby(rows, _dataset_model):
        group = list(members)
        for metric in CHOSEN_BY:
            mark_best([(row, metric) for row in group], SHOWN[metric])
    compared = [name for name in _compared_names() if any(row[f"_{name}"] for row in rows)]
    unused = tuple(f"{name}_" for name in _compared_names() if name not in compared)
    frame = frame_of([{name: row[name] for name in row if not name.startswith(unused)} for row in rows])
    return Table(
        title="Temperature scaling and focal temperature scaling on the test set (layout of K24 Table 1)",
        frame=frame,
        columns=(
            *DATASET_MODEL,
            Column("Approach", "approach"),
            Column("n", "seeds"),
            *(column for metric in CHOSEN_BY for column in _columns(metric, compared)),
        ),
        group=_dataset_model,
        notes=(
            f"A row named after a loss is temperature scaling; '+ {GAMMA}' adds the focal map.",
            BRACKETS_NOTE,
            "Log-loss is that of the fit chosen by validation log-loss, ECE that chosen by validation ECE.",
            "Best of each dataset and model in bold, ties at the shown digits included.",
            spread_note(used),
            *footnotes.notes(),
            *([PUBLISHED_NOTE] if any(name.endswith("_published") for name in compared) else []),
        ),
    )


def _k24_row(
    keys: list[Key], scores: list[Summary | None], published: Published, footnotes: Footnotes
) -> Cells:
    """Return one row of K24's layout: names, seeds, and for each metric ours, K24's and the difference."""
    dataset, model, loss, method = keys[0][:4]
    row = {
        "dataset": dataset,
        "model": model,
        "loss": loss,
        "method": method,
        "approach": loss_label(loss) if method == "ts" else f"+ {GAMMA}",
        "seeds": seeds_text(scores),
    }
    for (*_, criterion, name), score in zip(keys, scores, strict=True):
        fitted, metric = name != "accuracy", SHOWN[name]
        paper = published.get(("K24", dataset, model, loss, method, criterion if fitted else "", name))
        row |= score_cell(name, score, metric, fitted=fitted) | {f"{name}_best": None}
        text = "" if paper is None else printed_text(paper, footnotes, fitted=fitted)
        numbers = None if paper is None else printed_numbers(paper)
        row |= cell(f"{name}_published", text, PRINTED_FIELDS, numbers)
        text, difference = difference_from(paper, score, metric)
        row |= value_cell(f"{name}_difference", "mean", difference, text)
    return row


def _columns(metric: str, compared: list[str]) -> list[Column]:
    """Return the columns of a score: ours, K24's and the difference, the last two where there are any."""
    span = SHOWN[metric].heading
    beside = {f"{metric}_published": "K24", f"{metric}_difference": "difference"}
    return [
        number_column(metric, "ours", span=span, ranked=True),
        *(number_column(name, header, span=span) for name, header in beside.items() if name in compared),
    ]


def _compared_names() -> list[str]:
    return [f"{metric}_{kind}" for metric in CHOSEN_BY for kind in ("published", "difference")]


def _dataset_model(row: Cells) -> tuple[str, str]:
    return row["dataset"], row["model"]
