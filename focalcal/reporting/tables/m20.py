"""Our scores in the layouts of M20 Tables 1-13, above M20's numbers where it prints the same cell."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from focalcal.calibration.catalogue import METRICS, Metric
from focalcal.reporting.products import table
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.tables.columns import (
    DATASET_MODEL,
    difference_text,
    footnote_marks,
    footnotes,
    mark_best,
    printed_scores,
    printed_text,
    score_frame,
    score_text,
    seed_texts,
    spread_note,
    with_scores,
)
from focalcal.reporting.tables.table import Column, Row, Table
from focalcal.training.appearance import loss_label, loss_order

STAGES = {"pre": "Pre T", "post": "Post T"}
MMCE_NOTE = (
    "M20 prints one MMCE and does not say which: as defined, or as the released code computes it. Both of "
    "ours stand above the same printed numbers."
)


SHOWN = {
    "m20_ece": METRICS["ece"],
    "m20_adaece": replace(METRICS["adaece_authors"], label="AdaECE"),
    "m20_error": METRICS["error"],
    # In M20's unit.
    "m20_nll": replace(METRICS["nll"], label="Log-loss", factor=100, decimals=2),
    "m20_mce": METRICS["mce"],
    "m20_s99_share": METRICS["s99_share"],
    "m20_s99_accuracy": METRICS["s99_accuracy"],
}
"""The metric of each table."""


@table(
    section="paper tables",
    caption="Before and after temperature scaling, by training loss.",
    inputs=("metrics",),
    each={
        "m20_ece": {"order": 20, "heading": "ECE, layout of M20 Tables 1, 4 and 7"},
        "m20_adaece": {"order": 21, "heading": "AdaECE, layout of M20 Tables 2, 5 and 8"},
        "m20_error": {
            "order": 22,
            "heading": "Test error, layout of M20 Tables 3 and 9",
            "caption": "By training loss; temperature scaling does not change it.",
        },
        "m20_nll": {"order": 23, "heading": "Log-loss, layout of M20 Tables 10 and 11"},
        "m20_mce": {"order": 24, "heading": "MCE, layout of M20 Tables 12 and 13"},
        "m20_s99_share": {
            "order": 25,
            "heading": "Share of very confident predictions, layout of M20 Table 6",
            "caption": "Test samples predicted with confidence above 0.99, by training loss.",
        },
        "m20_s99_accuracy": {
            "order": 26,
            "heading": "Accuracy of very confident predictions, layout of M20 Table 6",
            "caption": "Accuracy on test samples predicted with confidence above 0.99, by training loss.",
        },
    },
)
def m20(sources: Sources) -> Table | None:
    """Return one row per dataset and model and one column per loss and stage, ours above M20's.

    T is on M20's grid, chosen by validation ECE, for AdaECE by validation AdaECE, with M20's bins. None
    without a run that has these scores.
    """
    product: Any = sources.product
    metric, scores = SHOWN[product.name], sources.scores
    stages = ("pre",) if metric.id == "error" else ("pre", "post")
    criterion = "adaece" if metric.id == "adaece_authors" else "ece"
    fits = {"pre": ("none", ""), "post": ("ts-m20", criterion)}
    losses = sorted({key[2] for key in scores.index}, key=loss_order)
    keys = {f"{loss}_{stage}": (loss, *fits[stage], metric.id) for loss in losses for stage in stages}
    rows = sorted({key[:2] for key in scores.index})
    ours = with_scores(score_frame(scores, rows, keys, ranked=keys), keys) if keys else scores
    if ours.empty:
        return None
    for stage in stages:
        mark_best(ours, [f"{loss}_{stage}" for loss in losses], metric, by=["dataset", "model"])
    ours.insert(2, "source", "ours")
    ours.insert(3, "seeds", seed_texts(ours, keys))
    frame = _with_printed(ours, score_frame(printed_scores(sources.published, "M20"), rows, keys), list(keys))
    marks = footnote_marks(frame)
    return Table(
        title=f"{metric.heading} by training loss ({product.heading.partition(', ')[2]})",
        frame=frame,
        columns=(
            *DATASET_MODEL,
            Column("Source", "source"),
            Column("n", "seeds"),
            *(_stage_column(loss, stage, metric, marks) for loss in losses for stage in stages),
        ),
        group=("dataset", "model"),
        notes=(
            *_stage_notes(stages, METRICS[criterion].name),
            spread_note(ours, keys),
            *(["M20 prints no spread over seeds."] if len(frame) > len(ours) else []),
            *([MMCE_NOTE] if "mmce-authors" in losses else []),
            *footnotes(marks),
        ),
    )


def _stage_notes(stages: Sequence[str], criterion: str) -> Sequence[str]:
    """Return what the columns of these stages and bold numbers mean."""
    if "post" not in stages:
        return ("Pre T: as trained.", "Best of our row in bold.")
    chosen = f"chosen by validation {criterion} from M20's grid, 0.1 to 10 in steps of 0.1"
    return (
        f"Pre T: as trained; post T: after temperature scaling, T in brackets, {chosen}.",
        "Best of our row in bold, before and after scaling separately.",
    )


def _with_printed(ours: pd.DataFrame, printed: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Return our rows, each above M20's and the row of differences if M20 prints any of its cells."""
    printed = with_scores(printed.loc[ours.index], keys)
    means = [f"{key}_mean" for key in keys]
    differences = printed[["dataset", "model", *(f"_{key}_decimals" for key in keys)]].copy()
    differences[means] = ours.loc[printed.index, means] - printed[means]
    for key in keys:
        printed[f"{key}_gamma_low"] = printed[f"{key}_gamma_high"] = printed.pop(f"{key}_gamma")
    named = [printed.assign(source="M20", seeds=""), differences.assign(source="difference", seeds="")]
    frame = pd.concat([ours, *named]).sort_index(kind="stable")
    for key in keys:
        # What is not ours competes with nothing.
        frame[f"{key}_best"] = frame[f"{key}_best"].fillna(0).where(frame[f"{key}_mean"].notna())
    return frame


def _stage_column(loss: str, stage: str, metric: Metric, marks: Mapping[str, str]) -> Column:
    """Return a loss before or after scaling: our score, the printed number or their difference."""
    key = f"{loss}_{stage}"

    def text(row: Row) -> str:
        if row["source"] == "M20":
            return printed_text(row, key, marks)
        if row["source"] == "difference":
            return difference_text(row[f"{key}_mean"], row[f"_{key}_decimals"], metric)
        return score_text(row, key, metric, fitted=stage == "post")

    return Column(STAGES[stage], text, f"{key}_mean", f"{key}_best", loss_label(loss))
