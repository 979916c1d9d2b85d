"""Building blocks of result tables: a score, a published number, their difference, the notes they need."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from focalcal.common.errors import UserError
from focalcal.reporting.records.measurements import Summary
from focalcal.reporting.records.published import CELL
from focalcal.reporting.tables.formats import Cell, Column, Row, Table, keep_columns
from focalcal.training.catalogue import parse_loss

MINUS = "\N{MINUS SIGN}"
GAMMA = "\N{GREEK SMALL LETTER GAMMA}"
MOST_IN_DIGITS = 1e5
SCORE_FIELDS = ("mean", "std", "seeds", "temperature", "gamma_low", "gamma_high")
PRINTED_FIELDS = ("mean", "std", "temperature", "gamma")

LOSS_NAMES = {
    "ce": "Cross-entropy",
    "brier": "Brier",
    "mmce": "MMCE",
    "flsd-53": "FLSD-53",
    "flsd-532": "FLSD-532",
    "focal-sched-532": "Focal scheduled 5-3-2",
    "focal-sched-531": "Focal scheduled 5-3-1",
    "adafocal": "AdaFocal",
}

Published = dict[tuple[str, ...], pd.Series]
"""Rows of `published.unique_cells` by (paper, dataset, model, loss, method, criterion, metric)."""


@dataclass(frozen=True)
class Scale:
    """How people see a metric: under `label`, multiplied by `factor`, with `decimals`."""

    label: str
    factor: float
    decimals: int
    higher_is_better: bool = False

    @property
    def inline(self) -> str:
        """Return the label for the middle of a phrase: a word begins small, an abbreviation stays."""
        return self.label[0].lower() + self.label[1:] if self.label[1:].islower() else self.label


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


def index_published(cells: pd.DataFrame) -> Published:
    """Return the rows of `published.unique_cells` for look-up by cell."""
    return {tuple(row[name] for name in CELL): row for _, row in cells.iterrows()}


def loss_name(loss: str) -> str:
    """Return the name of a loss in tables, such as `Focal γ = 2`; an unknown one as it is."""  # noqa: RUF002
    if loss in LOSS_NAMES:
        return LOSS_NAMES[loss]
    try:
        parsed = parse_loss(loss)
    except UserError:
        return loss
    if parsed.kind == "ls":
        return f"Label smoothing {parsed.epsilon:g}"
    if parsed.gamma is None:
        return loss
    name = f"{parsed.kind.replace('-', ' ').capitalize()} {GAMMA} = {parsed.gamma:g}"
    return f"{name}, smoothing {parsed.epsilon:g}" if parsed.epsilon else name


def number(value: float, decimals: int, *, signed: bool = False) -> str:
    """Return a rounded number with a true minus sign, never a negative zero; with a plus sign if `signed`.

    From 100,000 on it is a power of ten with two decimals.
    """
    text = f"{abs(value):.{decimals}f}"
    if abs(value) >= MOST_IN_DIGITS:
        text = f"{abs(value):.2e}".replace("e+0", "e").replace("e+", "e")
    if float(text) == 0:
        return text
    if value < 0:
        return f"{MINUS}{text}"
    return f"+{text}" if signed else text


def short_number(value: float) -> str:
    """Return a number with the digits it needs, four at most, and a true minus sign."""
    return f"{value:.4g}".replace("-", MINUS)


def score_cell(score: Summary | None, scale: Scale, fit: str = "") -> Cell:
    """Return `mean ± std (fit)` over seeds, without ± for one seed; empty without a score.

    `fit` says what the brackets hold: "T", "gamma T" or nothing.
    """
    if score is None:
        return Cell()
    text = number(score.mean * scale.factor, scale.decimals)
    if score.std is not None:
        text += f" ± {number(score.std * scale.factor, scale.decimals)}"
    low, high = score.gammas or (None, None)
    text += _fit_text(fit, score.temperature, score.gammas)
    return Cell(text, (score.mean, score.std, score.seeds, score.temperature, low, high))


def printed_cell(paper: pd.Series | None, fit: str, footnotes: Footnotes) -> Cell:
    """Return a published number with the digits as printed, marked where the transcription has a note."""
    if paper is None:
        return Cell()
    text = paper["printed"]
    if paper["printed_std"]:
        text += f" ± {paper['printed_std']}"
    temperature = None if pd.isna(paper["temperature"]) else float(paper["temperature"])
    gamma = float(paper["gamma"])
    text += _fit_text(fit, temperature, (gamma, gamma)) + footnotes.mark(paper["note"])
    std = None if pd.isna(paper["std"]) else float(paper["std"])
    return Cell(text, (float(paper["value"]), std, temperature, gamma))


def difference_cell(score: Summary | None, paper: pd.Series | None, scale: Scale) -> Cell:
    """Return ours - published at the published digits; empty where either is missing."""
    if score is None or paper is None:
        return Cell()
    difference = score.mean - float(paper["value"])
    decimals = len(paper["printed"].partition(".")[2])
    return Cell(number(difference * scale.factor, decimals, signed=True), (difference,))


def seeds_cell(scores: Sequence[Summary | None]) -> Cell:
    """Return how many seeds stand behind a row's scores: one number, or the range where they differ."""
    counts = sorted({score.seeds for score in scores if score is not None})
    text = str(counts[0]) if len(counts) == 1 else f"{counts[0]}\N{EN DASH}{counts[-1]}"
    return Cell(text)


def beside_columns(key: str, label: str, paper: str) -> list[Column]:
    """Return the three columns of a score: ours, the paper's, the difference."""
    return [
        Column(key, "ours", SCORE_FIELDS, span=label, ranked=True),
        Column(f"{key}_published", paper, PRINTED_FIELDS, span=label),
        Column(f"{key}_difference", "difference", ("mean",), span=label),
    ]


def drop_empty(table: Table) -> Table:
    """Return the table without its published and difference columns that hold nothing at all."""
    optional = ("_published", "_difference")
    keep = [
        not column.key.endswith(optional) or any(row[index].text for row in table.rows)
        for index, column in enumerate(table.columns)
    ]
    return keep_columns(table, keep)


def mark_best_in_column(rows: Sequence[Row], column: int, scale: Scale) -> list[Row]:
    """Return the rows with the best cell of one column marked, ties at the shown digits included."""
    marked = mark_best([row[column] for row in rows], scale)
    return [(*row[:column], cell, *row[column + 1 :]) for row, cell in zip(rows, marked, strict=True)]


def mark_best(cells: Sequence[Cell], scale: Scale) -> list[Cell]:
    """Return the cells with the best mean marked, ties at the shown digits included; empty cells stay."""
    means = [
        round(cell.numbers[0] * scale.factor, scale.decimals) if cell.numbers else None for cell in cells
    ]
    present = [mean for mean in means if mean is not None]
    if not present:
        return list(cells)
    best = max(present) if scale.higher_is_better else min(present)
    return [replace(cell, best=mean == best) for cell, mean in zip(cells, means, strict=True)]


def spread_note(scores: Sequence[Summary]) -> str:
    """Return what ± means for these scores, or that it is missing because there is one seed."""
    counts = {score.seeds for score in scores}
    if counts == {1}:
        return "One seed a setting (n = 1): no standard deviation can be given."
    note = "Mean ± sample standard deviation (n - 1) over n seeds"
    return f"{note}; none is given for a setting with one seed." if 1 in counts else f"{note}."


def _fit_text(fit: str, temperature: float | None, gammas: tuple[float, float] | None) -> str:
    parts = []
    if "gamma" in fit and gammas is not None:
        low, high = (short_number(gamma) for gamma in gammas)
        parts.append(f"{GAMMA} {low}" if low == high else f"{GAMMA} {low} to {high}")
    if "T" in fit and temperature is not None:
        parts.append(f"T {number(temperature, 2)}")
    return f" ({', '.join(parts)})" if parts else ""
