"""The answers of the first page, as views of tables: the map of calibrators, and sentences with numbers."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from focalcal.calibration.catalogue import METRICS, RANKED, Metric
from focalcal.reporting.figures.style import method_style
from focalcal.reporting.records.measurements import LEADING, SECOND
from focalcal.reporting.statistics.by_size import class_group
from focalcal.reporting.statistics.effects import (
    HIGHER,
    IDENTICAL,
    IMPORTED,
    LOWER,
    MIXED,
    ON_AVERAGE,
    OPEN,
    RAW,
    SIMULATED,
    group_order,
)
from focalcal.reporting.tables.by_size import map_text
from focalcal.reporting.text import MINUS, count_of, format_number, joined_names
from focalcal.training.appearance import IN_WORDS

Row = Mapping[str, Any]
"""A row of one of the tables."""
Answer = tuple[str, str, str]
"""A question, its answer in a few words, and the numbers behind it."""
BETTER, WORSE = {LOWER, ON_AVERAGE[LOWER]}, {HIGHER, ON_AVERAGE[HIGHER]}
PHRASES = {
    LOWER: "FTS is better than TS on networks trained with {}",
    ON_AVERAGE[LOWER]: "FTS is better than TS on average, but worse on some networks, trained with {}",
    HIGHER: "FTS is worse than TS on networks trained with {}",
    ON_AVERAGE[HIGHER]: "FTS is worse than TS on average, but better on some networks, trained with {}",
    MIXED: "FTS is better on some networks and worse on others trained with {}",
    OPEN: "no difference is shown on networks trained with {}",
    IDENTICAL: "FTS equals TS on networks trained with {}",
}
SHORT = {
    LOWER: "yes, FTS is better.",
    ON_AVERAGE[LOWER]: "on average, FTS is better.",
    HIGHER: "no, FTS is worse.",
    ON_AVERAGE[HIGHER]: "no, on average FTS is worse.",
    MIXED: "it depends on the network.",
    OPEN: "no difference is shown.",
    IDENTICAL: "they are identical.",
}
COLUMNS = ((LEADING, LEADING), ("brier", LEADING), (SECOND, LEADING), (SECOND, SECOND))
"""Metric and criterion of the card's columns, as far as they are known."""


class Mark(NamedTuple):
    """What a reader looks for on the map: logits with a name, their classes and validation samples."""

    name: str
    classes: int
    samples: int


def map_card(frame: pd.DataFrame, marks: Iterable[Mark] = ()) -> dict[str, Any] | None:
    """Return the map of calibrators, JSON-ready; None without one. `frame` is the table `calibrator_map`.

    It is about the networks of the first origin: a cell for each number of classes and of validation samples.
    A mark stands in the cell of its classes with the nearest number of samples; one that differs by more than
    a factor of two from all is named as lying off the map.
    """
    if frame.empty:
        return None
    here = frame[frame["origin"] == frame["origin"].iloc[0]]
    sizes = sorted(set(here["samples"]))
    cells = {(str(row["classes"]), row["samples"]): _map_cell(row) for row in here.to_dict("records")}
    off: list[str] = []
    for mark in marks:
        near = min(sizes, key=lambda size: abs(math.log(size / mark.samples)))
        place = class_group(mark.classes), near
        if place in cells and 0.5 <= near / mark.samples <= 2:
            cells[place]["marks"].append(mark.name)
        else:
            sizes_of_mark = f"{count_of(mark.classes, 'class')}, {count_of(mark.samples, 'sample')}"
            off.append(f"{mark.name} ({sizes_of_mark})")
    classes = dict.fromkeys(name for name, _ in cells)
    return {
        "origin": here["origin"].iloc[0],
        "networks": count_of(int(here.groupby("classes")["networks_count"].max().sum()), "network"),
        "off": "; ".join(off),
        "sizes": [f"{size:,.0f}" for size in sizes],
        "rows": [{"classes": name, "cells": [cells.get((name, size)) for size in sizes]} for name in classes],
    }


def _map_cell(row: Row) -> dict[str, Any]:
    changes = {"": "best_ts", f"{RANKED['fts'].label} ": "fts_ts"}
    if row["best"] == "fts":
        changes = {"": "fts_ts"}
    return {
        "name": row["best_name"],
        "color": method_style(row["best"]).color,
        "changes": [text for name, key in changes.items() if (text := map_text(row, key, name))],
        "marks": [],
    }


def answer_card(
    pays: pd.DataFrame, arena: pd.DataFrame, level: str, *, advised: bool = False
) -> list[dict[str, Any]]:
    """Return what to say about the networks of each origin, JSON-ready; empty if no run has FTS and TS.

    `pays` and `arena` are the tables `when_fts_pays` and `arena`, `level` is that of their intervals.
    Log-loss comes first, the Brier score and ECE second. Where the report has `advised` which calibrator to
    use for the user's own logits, their card does not answer that by test scores.
    """
    effects, ranked = (frame.to_dict("records") for frame in (pays, arena))
    cards = []
    for origin in sorted({row["origin"] for row in effects}, key=group_order):
        here = [row for row in effects if row["origin"] == origin]
        contest = [row for row in ranked if row.get("origin") == origin]
        told = advised and origin.startswith(IMPORTED)
        cards.append(_card(origin, here, [] if told else contest, level))
    return cards


def _card(origin: str, effects: Sequence[Row], contest: Sequence[Row], level: str) -> dict[str, Any]:
    columns = _card_columns(effects)
    leading = _of(effects, *columns[0])
    answers = [
        _use_answer(contest, level) if contest else None,
        _fts_answer(leading),
        _sure_answer(leading),
        _second_answer(effects, columns[1:]),
    ]
    families = dict.fromkeys(row["family"] for row in effects)
    return {
        "origin": origin,
        "networks": count_of(sum(row["networks_count"] for row in leading), "network"),
        "answers": [
            dict(zip(("question", "short", "text"), found, strict=True)) for found in answers if found
        ],
        "columns": [
            {"metric": METRICS[metric].heading, "criterion": METRICS[criterion].name}
            for metric, criterion in columns
        ],
        "rows": [_card_row([row for row in effects if row["family"] == name], columns) for name in families],
    }


def _card_columns(effects: Iterable[Row]) -> list[tuple[str, str]]:
    """Return metric and criterion of the card's columns: those of the first criterion without log-loss."""
    known = list(dict.fromkeys((row["metric"], row["criterion"]) for row in effects))
    columns = [pair for pair in COLUMNS if pair in known]
    return columns if columns[:1] == [COLUMNS[0]] else [pair for pair in known if pair[1] == known[0][1]]


def _of(effects: Iterable[Row], metric: str, criterion: str) -> list[Row]:
    return [row for row in effects if (row["metric"], row["criterion"]) == (metric, criterion)]


def _card_row(effects: Sequence[Row], columns: Iterable[tuple[str, str]]) -> dict[str, Any]:
    found = [_of(effects, *column) for column in columns]
    leading = found[0][0] if found[0] else effects[0]
    return {
        "family": leading["family"],
        "networks": count_of(leading["networks_count"], "network"),
        "runs": count_of(leading["runs_count"], "run"),
        "cells": [
            _cell(here[0], "difference_mean", "interval", "verdict") if here else None for here in found
        ],
        "best": leading["best_name"],
        "best_cells": [
            None
            if pd.isna(leading[f"best_{other}_estimate"])
            else _cell(leading, f"best_{other}_estimate", f"best_{other}", f"best_{other}_verdict")
            for other in ("ts", "fts")
        ],
    }


def _cell(row: Row, estimate: str, interval: str, verdict: str) -> dict[str, Any]:
    metric = METRICS[row["metric"]]
    return {
        "value": row[estimate],
        "difference": _points(row[estimate], metric),
        "interval": _range(row[f"{interval}_low"], row[f"{interval}_high"], metric),
        "verdict": row[verdict],
        "sign": "good" if row[verdict] in BETTER else "bad" if row[verdict] in WORSE else "",
    }


def _points(value: float, metric: Metric) -> str:
    return format_number(value * metric.factor, metric.difference_decimals, signed=True)


def _range(low: float, high: float, metric: Metric) -> str:
    return f"{_points(low, metric)} to {_points(high, metric)}"


def _use_answer(contest: Sequence[Row], level: str) -> Answer:
    """Return which calibrator to use: of those shown to beat TS by log-loss, the first in rank."""
    metric = METRICS[LEADING]
    shown = [row for row in contest if row["verdict"] in BETTER]
    first, best = contest[0], shown[0] if shown else contest[0]
    networks = f"{count_of(best['networks_count'], 'network')} on {best['datasets']}"
    if best["method"] == "ts":
        text = f"It has the best mean rank by {metric.name} among {len(contest)} calibrators ({networks})."
    else:
        interval = f"{level} interval {_range(best['nll_low'], best['nll_high'], metric)}"
        text = (
            f"{_capital(best['name'])} {MINUS} TS in {metric.name}: "
            f"{_points(best['nll_difference'], metric)} ({interval}; {networks})."
        )
        if best["networks_count"] > 1:
            text += f" {_shown_text(best['networks_lower'], best['networks_higher'], best['name'])}"
    if best is not first:
        text += f" {first['name']} ranks first but is not shown to beat TS."
    if shown:
        name = "the networks as trained" if best["method"] == RAW else RANKED[best["method"]].name
        short = (
            f"On these simulated data, {name}." if best["origin"].startswith(SIMULATED) else f"Use {name}."
        )
    elif first["method"] == "ts":
        short = "TS is enough."
    else:
        short = "TS: no calibrator is shown to beat it."
    return "Which calibrator?", short, text


def _fts_answer(found: Sequence[Row]) -> Answer:
    """Return whether FTS is better than TS by the leading metric, and what that depends on."""
    verdicts = {row["verdict"] for row in found}
    if len(verdicts - {IDENTICAL}) > 1:
        short = "it depends on the training loss."
    else:
        (verdict,) = (verdicts - {IDENTICAL}) or {IDENTICAL}
        short = SHORT[verdict]
    metric = METRICS[found[0]["metric"]]
    text = _verdicts_text(found)
    if len(found) == 1:
        interval = _range(found[0]["interval_low"], found[0]["interval_high"], metric)
        text = (
            f"FTS {MINUS} TS is {_points(found[0]['difference_mean'], metric)} ({interval}) on networks "
            f"trained with {_families_text([found[0]['family']])}."
        )
    return "FTS instead of TS?", f"By {metric.name}, {short}", _capital(text)


def _sure_answer(found: Sequence[Row]) -> Answer:
    """Return how many runs and networks are behind the answer, and on how many the difference is shown."""
    names = ("runs_count", "networks_count", "wins", "ties", "networks_lower", "networks_higher")
    runs, networks, wins, ties, lower, higher = (sum(row[name] for row in found) for name in names)
    metric = METRICS[found[0]["metric"]].name
    equal = f", the same in {ties}" if ties else ""
    text = f"FTS has the lower {metric} in {wins} of {count_of(runs, 'run')}{equal}."
    if networks > 1:
        text += f" {_shown_text(lower, higher, 'FTS')}"
    return "How sure is that?", f"{count_of(networks, 'network')}, {count_of(runs, 'run')}.", text


def _shown_text(better: float, worse: float, name: str) -> str:
    """Return on how many single networks a difference from TS is shown, and whom it favours."""
    found = f"Significant on {count_of(int(better + worse), 'network')}"
    if better and worse:
        return f"{found}: {better:.0f} favour {name}, {worse:.0f} TS."
    if better or worse:
        return f"{found}, favouring {name if better else 'TS'}."
    return "Significant on no single network."


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _second_answer(effects: Sequence[Row], columns: Sequence[tuple[str, str]]) -> Answer | None:
    """Return what the other scores say, and whether fitting by ECE harms log-loss."""
    if not columns:
        return None
    texts = [
        f"By {METRICS[metric].name}, fitted by {METRICS[criterion].name}: "
        f"{_verdicts_text(_of(effects, metric, criterion))}"
        for metric, criterion in columns
    ]
    worse = [row["family"] for row in _of(effects, LEADING, SECOND) if row["verdict"] in WORSE]
    if worse:
        texts.append(
            f"Fitted by {METRICS[SECOND].name}, FTS has a higher {METRICS[LEADING].name} than TS on networks "
            f"trained with {_families_text(worse)}: fit it by {METRICS[LEADING].name}."
        )
    names = dict.fromkeys(METRICS[metric].name for metric, _ in columns)
    return f"And by {joined_names(list(names))}?", "", " ".join(texts)


def _verdicts_text(found: Sequence[Row]) -> str:
    """Return for which losses FTS is better, worse or neither, by one metric and criterion."""
    by_verdict = {
        verdict: [row["family"] for row in found if row["verdict"] == verdict] for verdict in PHRASES
    }
    parts = [PHRASES[verdict].format(_families_text(names)) for verdict, names in by_verdict.items() if names]
    return f"{'; '.join(parts)}."


def _families_text(families: Sequence[str]) -> str:
    return joined_names([IN_WORDS.get(family, family) for family in families])
