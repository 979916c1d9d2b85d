"""Cells that result tables share: a score over seeds, a published number, their difference, best marks.

A row of a table is a dict. A cell adds its text to it under `_key`, for people, and its numbers under
`key_field`, for programs; `number_column` shows it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS, Metric
from focalcal.reporting.records.measurements import Summary
from focalcal.reporting.statistics.intervals import MeanInterval
from focalcal.reporting.tables.table import Column
from focalcal.reporting.text import format_number, format_short
from focalcal.training.appearance import GAMMA

SCORE_FIELDS = ("mean", "std", "seeds", "temperature", "gamma_low", "gamma_high")
PRINTED_FIELDS = ("mean", "std", "temperature", "gamma")
INTERVAL_FIELDS = ("mean", "half_width", "seeds")
DATASET_MODEL = (Column("Dataset", "dataset", merge=True), Column("Model", "model", merge=True))
BRACKETS_NOTE = (
    f"In brackets the {GAMMA} of the map, or its range over seeds, and the mean temperature over seeds."
)

Cells = dict[str, Any]


@dataclass
class Footnotes:
    """The doubts about published numbers in a table, numbered in order of appearance."""

    texts: list[str] = field(default_factory=list)

    def mark(self, text: str) -> str:
        """Return the mark of a doubt, such as ` †2`; nothing for an empty text."""
        if not text:
            return ""
        if text not in self.texts:
            self.texts.append(text)
        return f" †{self.texts.index(text) + 1}"

    def notes(self) -> list[str]:
        """Return the notes that explain the marks."""
        return [f"†{number} As printed; {text}." for number, text in enumerate(self.texts, start=1)]


def number_column(
    key: str, header: str, number: str = "mean", *, span: str = "", ranked: bool = False
) -> Column:
    """Return the column that shows the cells of `key` and sorts by one of their numbers."""
    return Column(header, f"_{key}", f"{key}_{number}", f"{key}_best" if ranked else "", span)


def cell(key: str, text: str, fields: Sequence[str], numbers: Sequence[Any] | None) -> Cells:
    """Return a cell; without numbers its fields are empty."""
    values = (None,) * len(fields) if numbers is None else numbers
    named = zip(fields, values, strict=True)
    return {f"_{key}": text, **{f"{key}_{name}": value for name, value in named}}


def value_cell(key: str, name: str, value: float | None, text: str) -> Cells:
    """Return a cell with one number."""
    return cell(key, text, (name,), (value,))


def score_cell(key: str, score: Summary | None, metric: Metric, *, fitted: bool = False) -> Cells:
    """Return `mean ± std` over seeds, with the fitted parameters in brackets if `fitted`."""
    if score is None:
        return cell(key, "", SCORE_FIELDS, None)
    text = score_text(score, metric)
    if fitted:
        text += parameters_text(score.temperature, score.gammas)
    gammas = score.gammas or (None, None)
    return cell(key, text, SCORE_FIELDS, (score.mean, score.std, score.seeds, score.temperature, *gammas))


def score_text(score: Summary, metric: Metric) -> str:
    """Return `mean ± std` over seeds on the metric's scale, without ± for one seed."""
    return _with_spread(score.mean, score.std, metric)


def interval_cell(
    key: str, interval: MeanInterval | None, metric: Metric, missing: str = "", *, signed: bool = False
) -> Cells:
    """Return `mean ± half-width` of an interval; the text `missing` without one."""
    if interval is None:
        return cell(key, missing, INTERVAL_FIELDS, None)
    text = _with_spread(interval.mean, interval.half_width, metric, signed=signed)
    return cell(key, text, INTERVAL_FIELDS, (interval.mean, interval.half_width, interval.seeds))


def parameters_text(temperature: float | None, gammas: tuple[float, float] | None) -> str:
    """Return gamma (or its range) and temperature of fits in brackets; without gamma where it is 0."""
    parts = []
    if gammas is not None and any(gammas):
        low, high = map(format_short, gammas)
        parts.append(f"{GAMMA} {low}" if low == high else f"{GAMMA} {low} to {high}")
    if temperature is not None:
        parts.append(f"T {format_number(temperature, 2)}")
    return f" ({', '.join(parts)})" if parts else ""


def printed_text(paper: pd.Series, footnotes: Footnotes, *, fitted: bool) -> str:
    """Return a published number with the digits as printed, marked where the transcription has a note."""
    spread = f" ± {paper['printed_std']}" if paper["printed_std"] else ""
    _, _, temperature, gamma = printed_numbers(paper)
    parameters = parameters_text(temperature, (gamma, gamma)) if fitted else ""
    return f"{paper['printed']}{spread}{parameters}{footnotes.mark(paper['note'])}"


def printed_numbers(paper: pd.Series) -> tuple[float, float | None, float | None, float]:
    """Return mean, standard deviation, temperature and gamma as published."""
    std, temperature = (
        None if pd.isna(paper[name]) else float(paper[name]) for name in ("std", "temperature")
    )
    return float(paper["value"]), std, temperature, float(paper["gamma"])


def difference_from(
    paper: pd.Series | None, score: Summary | None, metric: Metric
) -> tuple[str, float | None]:
    """Return ours minus published, as text with the published digits and as number, if both are there."""
    if score is None or paper is None:
        return "", None
    difference = score.mean - float(paper["value"])
    decimals = len(paper["printed"].partition(".")[2])
    return format_number(difference * metric.factor, decimals, signed=True), difference


def seeds_text(scores: Iterable[Summary | None]) -> str:
    """Return how many seeds are behind a row's scores: one number, or the range where they differ."""
    counts = sorted({score.seeds for score in scores if score is not None})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]}\N{EN DASH}{counts[-1]}"


def mark_best(cells: Iterable[tuple[Cells, str]], metric: Metric) -> None:
    """Set `key_best` of cells, given as row and key: 1 for the best mean and ties at the shown digits."""
    means = [
        (row, key, round(row[f"{key}_mean"] * metric.factor, metric.decimals))
        for row, key in cells
        if row[f"{key}_mean"] is not None
    ]
    if means:
        choose = max if metric.higher_is_better else min
        best = choose(mean for *_, mean in means)
        for row, key, mean in means:
            row[f"{key}_best"] = int(mean == best)


def spread_note(scores: Iterable[Summary]) -> str:
    """Return what ± means for these scores, or that it is missing because there is one seed."""
    counts = {score.seeds for score in scores}
    if counts == {1}:
        return "One seed per setting (n = 1): no standard deviation can be given."
    note = "Mean ± sample standard deviation (n - 1) over n seeds"
    return f"{note}; none is given for a setting with one seed." if 1 in counts else f"{note}."


def is_fitted(method: str) -> bool:
    """Return whether a method has parameters that are fitted to validation data."""
    return METHODS[method].criteria != ()


def criterion_name(criterion: str) -> str:
    """Return what a fit was chosen by, for people; nothing where nothing was fitted."""
    if not criterion:
        return ""
    return METRICS[criterion].name if criterion in METRICS else f"{criterion} loss"


def _with_spread(mean: float, spread: float | None, metric: Metric, *, signed: bool = False) -> str:
    text = format_number(mean * metric.factor, metric.decimals, signed=signed)
    return text if spread is None else f"{text} ± {format_number(spread * metric.factor, metric.decimals)}"
