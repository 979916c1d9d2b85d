"""Our scores in the layout of K24 Table 1, with K24's numbers beside them where it prints the same cell."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from focalcal.calibration.catalogue import METRICS
from focalcal.reporting.products import table
from focalcal.reporting.records.measurements import sorted_settings
from focalcal.reporting.records.published import K24_LOG_LOSS
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.tables.columns import (
    BRACKETS_NOTE,
    DATASET_MODEL,
    difference_text,
    footnote_marks,
    footnotes,
    mark_best,
    printed_scores,
    printed_text,
    score_column,
    score_frame,
    seed_texts,
    spread_note,
    with_scores,
)
from focalcal.reporting.tables.table import Column, Table
from focalcal.training.appearance import GAMMA, loss_label

CHOSEN_BY = {"accuracy": "adaece", "nll": "nll", "adaece": "adaece"}
"""K24's metrics, each with the criterion of the fit whose score is shown; accuracy is the same for all."""
SHOWN = {name: METRICS[name] for name in CHOSEN_BY} | {
    "adaece": replace(METRICS["adaece"], label="ECE, equal mass")
}

LOG_LOSS_METHODS = {"ts": "ts", "fts": K24_LOG_LOSS}
"""The fits of each row whose log-loss is shown."""
PUBLISHED_NOTE = "K24: 5 seeds, ResNet-50."


@table(
    section="paper tables",
    order=10,
    heading="Layout of K24 Table 1",
    caption="Temperature scaling and focal temperature scaling by training loss.",
    inputs=("metrics",),
)
def k24_table1(sources: Sources) -> Table | None:
    """Return one row per loss with TS and, below it, `+ gamma` with FTS; None without such scores."""
    rows = [(*setting, method) for setting in sorted_settings(sources.scores) for method in ("ts", "fts")]
    ours = {name: (criterion, name) for name, criterion in CHOSEN_BY.items()}
    theirs = {f"{name}_published": ("" if name == "accuracy" else ours[name][0], name) for name in ours}
    printed = _row_scores(printed_scores(sources.published, "K24"), rows, theirs)
    frame = _row_scores(sources.scores, rows, ours, ranked=ours).join(printed.filter(like="_published_"))
    frame = with_scores(frame, ours)
    if frame.empty:
        return None
    for name, metric in SHOWN.items():
        mark_best(frame, [name], metric, by=["dataset", "model"])
        frame[f"{name}_difference_mean"] = frame[f"{name}_mean"] - frame[f"{name}_published_mean"]
    frame["approach"] = frame["loss"].map(loss_label).where(frame["method"] == "ts", f"+ {GAMMA}")
    frame["seeds"] = seed_texts(frame, ours)
    marks = footnote_marks(frame)
    frame = _measured_columns(frame)
    return Table(
        title="Temperature scaling and focal temperature scaling on the test set (layout of K24 Table 1)",
        frame=frame,
        columns=(
            *DATASET_MODEL,
            Column("Approach", "approach"),
            Column("n", "seeds"),
            *(
                column
                for name in ours
                for column in _metric_columns(name, marks)
                if column.value in frame.columns
            ),
        ),
        group=("dataset", "model"),
        notes=(
            f"A row named after a loss is temperature scaling; '+ {GAMMA}' adds the focal map.",
            BRACKETS_NOTE,
            f"{GAMMA} is chosen by validation ECE; T by validation log-loss and ECE for the column of each.",
            "Best of each dataset and model in bold, ties at the shown digits included.",
            spread_note(frame, ours),
            *footnotes(marks),
            *([PUBLISHED_NOTE] if any(f"{key}_mean" in frame for key in theirs) else []),
        ),
    )


def _row_scores(
    scores: pd.DataFrame,
    rows: Sequence[tuple[str, ...]],
    keys: Mapping[str, tuple[str, str]],
    ranked: Collection[str] = (),
) -> pd.DataFrame:
    """Return the numbers of all keys; those of log-loss are of the fits that K24 chose for it."""
    frame = score_frame(scores, rows, keys, ranked)
    for_log_loss = [(*setting, LOG_LOSS_METHODS[method]) for *setting, method in rows]
    of_log_loss = {key: names for key, names in keys.items() if names[-1] == "nll"}
    log_loss = score_frame(scores, for_log_loss, of_log_loss, ranked).filter(regex="^_?nll")
    return frame.assign(**log_loss)


def _measured_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame ordered by metric: ours, K24's and the difference, the last two if there are any."""
    names = ["dataset", "model", "loss", "method", "approach", "seeds"]
    parts = [frame[names]]
    for metric in CHOSEN_BY:
        part = frame.filter(regex=f"^_?{metric}_")
        for key in (f"{metric}_published", f"{metric}_difference"):
            if part[f"{key}_mean"].isna().all():
                part = part.drop(columns=part.filter(regex=f"^_?{key}_").columns)
        parts.append(part)
    return pd.concat(parts, axis=1)


def _metric_columns(name: str, marks: Mapping[str, str]) -> list[Column]:
    """Return the columns of a metric: ours, K24's and the difference."""
    metric, published, difference = SHOWN[name], f"{name}_published", f"{name}_difference_mean"
    return [
        score_column(name, "ours", metric, fitted=name != "accuracy", span=metric.heading),
        Column(
            "K24", lambda row: printed_text(row, published, marks), f"{published}_mean", span=metric.heading
        ),
        Column(
            "difference",
            lambda row: difference_text(row[difference], row[f"_{published}_decimals"], metric),
            difference,
            span=metric.heading,
        ),
    ]
