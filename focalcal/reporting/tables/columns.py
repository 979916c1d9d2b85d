"""Columns that tables share: scores over seeds, published numbers, intervals; and which scores are best.

A table's frame holds numbers; a column turns them into text. The score `key` of a row is spread over the
frame's columns `key_mean`, `key_std` and so on: `score_frame` makes them, `score_column` shows them.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS, Metric
from focalcal.reporting.records.published import CELL, Published
from focalcal.reporting.tables.table import Column, Row
from focalcal.reporting.text import MINUS, format_number, format_short
from focalcal.training.appearance import GAMMA, loss_label

LOSS = Column("Training loss", lambda row: loss_label(row["loss"]), merge=True)
"""The training loss of rows whose column `loss` has its id."""
DATASET_MODEL = (Column("Dataset", "dataset", merge=True), Column("Model", "model", merge=True))
CALIBRATED_NOTE = (
    "If calibrated: the error to expect of the same confidences on as many samples if each were the chance "
    "to be correct. Binned errors are never 0."
)
SMALLEST_P = 0.001
"""Smaller p-values are not told apart."""
BRACKETS_NOTE = (
    f"In brackets the {GAMMA} of the map, or its range over seeds, and the mean temperature over seeds."
)


def score_frame(
    scores: pd.DataFrame,
    rows: Sequence[tuple[str, ...]],
    keys: Mapping[str, tuple[str, ...]],
    ranked: Collection[str] = (),
) -> pd.DataFrame:
    """Return the names of each row and the numbers of all keys side by side; NaN where there is no score.

    The index of `scores` has the names of a row followed by those of a key, such as dataset, model and loss,
    then method, criterion and metric. A column `mean` of `scores` becomes `key_mean`, a hidden column
    `_text` becomes `_key_text`. The keys in `ranked` get a column `key_best` that `mark_best` fills.
    """
    levels = scores.index.names
    parts = [pd.DataFrame(rows, columns=levels[: -len(next(iter(keys.values())))])]
    for key, names in keys.items():
        index = pd.MultiIndex.from_tuples([(*row, *names) for row in rows], names=levels)
        part = scores.reindex(index)
        if key in ranked:
            part["best"] = pd.NA
        part.columns = [f"_{key}{name}" if name.startswith("_") else f"{key}_{name}" for name in part]
        parts.append(part.reset_index(drop=True))
    return pd.concat(parts, axis=1)


def with_scores(frame: pd.DataFrame, keys: Iterable[str]) -> pd.DataFrame:
    """Return the rows that have a score of any key."""
    return frame[frame[[f"{key}_mean" for key in keys]].notna().any(axis=1)].copy()


def mark_best(frame: pd.DataFrame, keys: Iterable[str], metric: Metric, by: Sequence[str]) -> None:
    """Set `key_best` of all keys: 1 for the best mean among them and rows that agree in `by`, 0 for others.

    Means that are equal at the shown digits are equally good.
    """
    means = {key: frame[f"{key}_mean"] for key in keys}
    shown = pd.DataFrame(means).map(lambda mean: round(float(mean) * metric.factor, metric.decimals))
    choose = "max" if metric.higher_is_better else "min"
    best = shown.agg(choose, axis=1).groupby([frame[name] for name in by]).transform(choose)
    for key in shown:
        frame[f"{key}_best"] = (shown[key] == best).astype("Int64").where(shown[key].notna())


def number_column(
    name: str, header: str, text: Callable[[Any], str] = str, missing: str = "", span: str = ""
) -> Column:
    """Return the column that shows one number of the frame by a format, or `missing`."""
    return Column(header, lambda row: missing if pd.isna(row[name]) else text(row[name]), name, span=span)


def scaled_column(
    name: str, header: str, metric: Metric | None = None, *, signed: bool = False, span: str = ""
) -> Column:
    """Return the column that shows one number of the frame on a metric's scale, as differences are shown.

    Without `metric`, it is that of the row's `_metric`.
    """
    return Column(header, lambda row: _as_difference(row, name, metric, signed), name, span=span)


def bounds_column(
    low: str, header: str, metric: Metric | None = None, *, signed: bool = True, span: str = ""
) -> Column:
    """Return the column that shows an interval as `scaled_column` shows a number; `low` names a bound."""
    names = (low, low.replace("low", "high"))

    def text(row: Row) -> str:
        bounds = [_as_difference(row, name, metric, signed) for name in names]
        return " to ".join(bounds) if bounds[0] else ""

    return Column(header, text, low, span=span)


def difference_columns(
    name: str, low: str, header: str, level: str, metric: Metric | None = None, span: str = ""
) -> tuple[Column, Column]:
    """Return the columns of a difference and of its interval."""
    return (
        scaled_column(name, header, metric, signed=True, span=span),
        bounds_column(low, f"{level} interval", metric, span=span),
    )


def p_text(value: float) -> str:
    """Return a p-value with three decimals."""
    return "<0.001" if value < SMALLEST_P else f"{value:.3f}"


def _as_difference(row: Row, name: str, metric: Metric | None, signed: bool) -> str:
    if pd.isna(row[name]):
        return ""
    metric = metric or METRICS[row["_metric"]]
    return format_number(row[name] * metric.factor, metric.difference_decimals, signed=signed)


def score_column(
    key: str, header: str, metric: Metric, *, fitted: bool = False, span: str = "", ranked: bool = True
) -> Column:
    """Return the column that shows a score by `score_text`."""
    text = partial(score_text, key=key, metric=metric, fitted=fitted)
    return Column(header, text, f"{key}_mean", f"{key}_best" if ranked else "", span)


def score_text(row: Row, key: str, metric: Metric, *, fitted: bool) -> str:
    """Return `mean ± std` over seeds, with the fitted parameters in brackets if `fitted`."""
    text = spread_text(row, key, metric, "std")
    parameters = (row[f"{key}_{name}"] for name in ("gamma_low", "gamma_high", "temperature"))
    return text + parameters_text(*parameters) if fitted else text


def interval_column(
    key: str, header: str, metric: Metric, missing: str = "", *, signed: bool = False, **more: Any
) -> Column:
    """Return `mean ± half-width` of an interval, or `missing`; `more` are fields of the column."""
    text = partial(spread_text, key=key, metric=metric, spread="half_width", signed=signed)
    return Column(header, lambda row: text(row) or missing, f"{key}_mean", **more)


def finer(metric: Metric) -> Metric:
    """Return a metric with the decimals at which differences become visible."""
    return replace(metric, decimals=max(metric.decimals, metric.difference_decimals - 1))


def spread_text(row: Row, key: str, metric: Metric, spread: str, *, signed: bool = False) -> str:
    """Return `mean ± spread` on the metric's scale, without ± for one seed; nothing without a mean."""
    mean, width = row[f"{key}_mean"], row[f"{key}_{spread}"]
    if pd.isna(mean):
        return ""
    text = format_number(mean * metric.factor, metric.decimals, signed=signed)
    return text if pd.isna(width) else f"{text} ± {format_number(width * metric.factor, metric.decimals)}"


def parameters_text(low: float, high: float, temperature: float) -> str:
    """Return the range of gamma and the temperature of fits in brackets; nothing where gamma is 0 or NaN."""
    parts = []
    if not pd.isna(low) and (low or high):
        first, last = format_short(low), format_short(high)
        parts.append(f"{GAMMA} {first}" if first == last else f"{GAMMA} {first} to {last}")
    if not pd.isna(temperature):
        parts.append(f"T {format_number(temperature, 2)}")
    return f" ({', '.join(parts)})" if parts else ""


def printed_scores(published: Published, paper: str) -> pd.DataFrame:
    """Return a paper's numbers in the form of a summary of ours, with what formats need in hidden columns.

    These are the text with the digits as printed, the number of decimals, and the doubt about a number.
    """
    cells = pd.DataFrame([cell for key, cell in published.items() if key[0] == paper])
    cells = cells.rename(columns={"value": "mean", "note": "_note"}).set_index(CELL[1:])
    # What was not fitted by a criterion has no parameters to show.
    parameters = [
        parameters_text(cell.gamma, cell.gamma, cell.temperature) if cell.Index[-2] else ""
        for cell in cells.itertuples()
    ]
    spreads = [f" ± {std}" if std else "" for std in cells["printed_std"]]
    cells["_text"] = cells["printed"] + spreads + parameters
    cells["_decimals"] = [len(text.partition(".")[2]) for text in cells["printed"]]
    return cells[["mean", "std", "temperature", "gamma", "_text", "_decimals", "_note"]]


def printed_text(row: Row, key: str, marks: Mapping[str, str]) -> str:
    """Return a published number as printed, with the mark of the doubt about it."""
    return "" if pd.isna(row[f"{key}_mean"]) else row[f"_{key}_text"] + marks[row[f"_{key}_note"]]


def difference_text(difference: float, decimals: float, metric: Metric) -> str:
    """Return ours minus published with the published decimals; nothing if one of them is missing."""
    if pd.isna(difference):
        return ""
    return format_number(difference * metric.factor, int(decimals), signed=True)


def footnote_marks(frame: pd.DataFrame) -> dict[str, str]:
    """Return the mark of each doubt about the frame's published numbers, such as ` †2`, in reading order."""
    texts = frame.filter(regex="_note$").fillna("").to_numpy().ravel()
    doubts = [text for text in dict.fromkeys(texts) if text]
    return {"": "", **{text: f" †{number}" for number, text in enumerate(doubts, 1)}}


def footnotes(marks: Mapping[str, str]) -> list[str]:
    """Return the notes that explain the marks."""
    return [f"{mark.strip()} As printed; {text}." for text, mark in marks.items() if text]


def seed_texts(frame: pd.DataFrame, keys: Iterable[str]) -> list[str]:
    """Return how many seeds are behind each row's scores: one number, or the range where they differ."""
    counts = frame[[f"{key}_seeds" for key in keys]]
    ranges = zip(counts.min(axis=1), counts.max(axis=1), strict=True)
    return [str(low) if low == high else f"{low}\N{EN DASH}{high}" for low, high in ranges]


def spread_note(frame: pd.DataFrame, keys: Iterable[str]) -> str:
    """Return what ± means for these scores, or that it is missing because there is one seed."""
    counts = {count for key in keys for count in frame[f"{key}_seeds"].dropna()}
    if counts == {1}:
        return "One seed per setting (n = 1): no standard deviation can be given."
    note = f"Mean ± sample standard deviation (n {MINUS} 1) over n seeds"
    return f"{note}; none is given for a setting with one seed." if 1 in counts else f"{note}."


def is_fitted(method: str) -> bool:
    """Return whether a method has parameters that are fitted to validation data."""
    return METHODS[method].criteria != ()


def criterion_name(criterion: str) -> str:
    """Return what a calibrator was fitted by, for people; nothing where nothing was fitted."""
    if not criterion:
        return ""
    return METRICS[criterion].name if criterion in METRICS else f"{criterion} loss"
