"""Our scores in the layouts of K24 Table 1 and M20 Tables 1-13, above the numbers that the papers print."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from focalcal.calibration.catalogue import METRICS, Metric
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
    score_frame,
    score_text,
    seed_texts,
    spread_note,
    with_scores,
)
from focalcal.reporting.tables.table import Column, Row, Table
from focalcal.training.appearance import GAMMA, loss_label, loss_order

K24_CHOSEN_BY = {"accuracy": "adaece", "nll": "nll", "adaece": "adaece"}
"""K24's metrics, each with the criterion of the fit whose score is shown; accuracy is the same for all."""
K24_SHOWN = {name: METRICS[name] for name in K24_CHOSEN_BY} | {
    "adaece": replace(METRICS["adaece"], label="ECE, equal mass")
}
K24_LOG_LOSS_METHODS = {"ts": "ts", "fts": K24_LOG_LOSS}
"""The fits of each row whose log-loss is shown."""
STAGES = {"pre": "Pre T", "post": "Post T"}
MMCE_NOTE = (
    "M20 prints one MMCE and does not say which: as defined, or as the released code computes it. Both of "
    "ours stand above the same printed numbers."
)
K24_NOTE = (
    f"K24: 5 seeds, ResNet-50; one {GAMMA} per row, ours is each seed's own. It states neither augmentation "
    "nor which images are held out: these are our choice."
)
FLSD_NOTE = (
    "FLSD-53 and FLSD-532 change gamma at p = 0.2, as M20's released code and networks do. With the 0.19 of "
    "its text they are called flsd-53-paper and flsd-532-paper."
)

M20_SHOWN = {
    "m20_ece": METRICS["ece"],
    "m20_adaece": replace(METRICS["adaece_authors"], label="AdaECE"),
    "m20_error": METRICS["error"],
    # In M20's unit.
    "m20_nll": replace(METRICS["nll"], label="Log-loss", factor=100, decimals=2),
    "m20_mce": METRICS["mce"],
    "m20_s99_share": METRICS["s99_share"],
    "m20_s99_accuracy": METRICS["s99_accuracy"],
}
"""The metric of each of M20's tables."""


@table(
    section="paper tables",
    order=10,
    heading="Layout of K24 Table 1",
    caption="Temperature scaling and focal temperature scaling by training loss.",
    inputs=("metrics",),
)
def k24_table1(sources: Sources) -> Table | None:
    """Return one row per loss with TS and, below it, `+ gamma` with FTS; None without such scores."""
    rows = [
        (*setting, method) for setting in sorted_settings(sources.scores.index) for method in ("ts", "fts")
    ]
    keys = {name: (criterion, name) for name, criterion in K24_CHOSEN_BY.items()}
    ours = with_scores(_k24_scores(sources.scores, rows, keys, ranked=keys), keys)
    if ours.empty:
        return None
    for name, metric in K24_SHOWN.items():
        mark_best(ours, [name], metric, by=["dataset", "model"])
    ours.insert(4, "seeds", seed_texts(ours, keys))
    printed = _k24_scores(
        printed_scores(sources.published, "K24"), rows, {**keys, "accuracy": ("", "accuracy")}
    )
    frame = _with_printed(ours, printed, list(keys))
    frame.insert(4, "approach", frame["loss"].map(loss_label).where(frame["method"] == "ts", f"+ {GAMMA}"))
    marks = footnote_marks(frame)
    return Table(
        title="Temperature scaling and focal temperature scaling on the test set (layout of K24 Table 1)",
        frame=frame,
        columns=(
            *DATASET_MODEL,
            Column("Approach", "approach", merge=True),
            *_source_columns("K24"),
            *(
                _score_column(name, metric.heading, metric, marks, name != "accuracy")
                for name, metric in K24_SHOWN.items()
            ),
        ),
        group=("dataset", "model"),
        notes=(
            f"A row named after a loss is temperature scaling; '+ {GAMMA}' adds the focal map.",
            BRACKETS_NOTE,
            f"{GAMMA} is fitted by validation ECE; T by validation log-loss and ECE for the column of each.",
            "Best of each dataset and model in bold, ties at the shown digits included.",
            spread_note(ours, keys),
            *footnotes(marks),
            *([FLSD_NOTE] if "flsd-53" in set(frame["loss"]) else []),
            *([K24_NOTE] if len(frame) > len(ours) else []),
        ),
    )


def _k24_scores(
    scores: pd.DataFrame,
    rows: Sequence[tuple[str, ...]],
    keys: Mapping[str, tuple[str, str]],
    ranked: Collection[str] = (),
) -> pd.DataFrame:
    """Return the numbers of all keys; those of log-loss are of the fits that K24 chose for it."""
    frame = score_frame(scores, rows, keys, ranked)
    for_log_loss = [(*setting, K24_LOG_LOSS_METHODS[method]) for *setting, method in rows]
    log_loss = score_frame(scores, for_log_loss, {"nll": keys["nll"]}, ranked).filter(regex="^_?nll")
    return frame.assign(**log_loss)


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
    metric, scores = M20_SHOWN[product.name], sources.scores
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
    ours.insert(2, "seeds", seed_texts(ours, keys))
    frame = _with_printed(ours, score_frame(printed_scores(sources.published, "M20"), rows, keys), list(keys))
    marks = footnote_marks(frame)
    return Table(
        title=f"{metric.heading} by training loss ({product.heading.partition(', ')[2]})",
        frame=frame,
        columns=(
            *DATASET_MODEL,
            *_source_columns("M20"),
            *(
                _score_column(
                    f"{loss}_{stage}",
                    STAGES[stage],
                    metric,
                    marks,
                    fitted=stage == "post",
                    span=loss_label(loss),
                )
                for loss in losses
                for stage in stages
            ),
        ),
        group=("dataset", "model"),
        notes=(
            *_stage_notes(stages, METRICS[criterion].name),
            spread_note(ours, keys),
            *(["M20 prints no spread over seeds."] if len(frame) > len(ours) else []),
            *([MMCE_NOTE] if "mmce-authors" in losses else []),
            *([FLSD_NOTE] if {"flsd-53", "flsd-532"} & {*losses} else []),
            *footnotes(marks),
        ),
    )


def _stage_notes(stages: Sequence[str], criterion: str) -> Sequence[str]:
    """Return what the columns of these stages and bold numbers mean."""
    if "post" not in stages:
        return ("Pre T: as trained.", "Best of our row in bold.")
    fitted = f"fitted by validation {criterion} on M20's grid, 0.1 to 10 in steps of 0.1"
    return (
        f"Pre T: as trained; post T: after temperature scaling, T in brackets, {fitted}.",
        "Best of our row in bold, before and after scaling separately.",
    )


def _with_printed(ours: pd.DataFrame, printed: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Return our rows, each above the printed one and that of differences if any of its cells is printed."""
    printed = with_scores(printed.loc[ours.index], keys)
    means = [f"{key}_mean" for key in keys]
    names = [name for name in ("dataset", "model", "loss", "method") if name in ours]
    differences = printed[[*names, *(f"_{key}_decimals" for key in keys)]].copy()
    differences[means] = ours.loc[printed.index, means] - printed[means]
    for key in keys:
        printed[f"{key}_gamma_low"] = printed[f"{key}_gamma_high"] = printed.pop(f"{key}_gamma")
    ours = ours.copy()
    ours.insert(len(names), "source", "ours")
    others = [printed.assign(source="printed", seeds=""), differences.assign(source="difference", seeds="")]
    frame = pd.concat([ours, *others]).sort_index(kind="stable")
    for key in keys:
        # Only our rows are ranked.
        frame[f"{key}_best"] = frame[f"{key}_best"].fillna(0).where(frame[f"{key}_mean"].notna())
    return frame


def _source_columns(paper: str) -> tuple[Column, Column]:
    return (
        Column("Source", lambda row: paper if row["source"] == "printed" else row["source"]),
        Column("n", "seeds"),
    )


def _score_column(
    key: str, header: str, metric: Metric, marks: Mapping[str, str], fitted: bool, span: str = ""
) -> Column:
    """Return the column of our score, the printed number or their difference."""

    def text(row: Row) -> str:
        if row["source"] == "printed":
            return printed_text(row, key, marks)
        if row["source"] == "difference":
            return difference_text(row[f"{key}_mean"], row[f"_{key}_decimals"], metric)
        return score_text(row, key, metric, fitted=fitted)

    return Column(header, text, f"{key}_mean", f"{key}_best", span)
