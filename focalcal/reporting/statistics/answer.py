"""The answer card: which calibrator to use and when FTS pays, in sentences that follow from the numbers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS, Metric
from focalcal.reporting.statistics.arena import (
    SECOND,
    Arena,
    Contestant,
    arena_criterion,
    arena_of,
)
from focalcal.reporting.statistics.effects import IDENTICAL, MIXED, Effect
from focalcal.reporting.statistics.families import (
    LEADING,
    ORIGINS,
    TRAINED,
    FamilyEffect,
    family_effects,
    with_origins,
)
from focalcal.reporting.statistics.tests import HIGHER, LOWER, OPEN, Interval
from focalcal.reporting.text import format_number, joined_names

PHRASES = {
    LOWER: "FTS is better than TS on networks trained with {}",
    HIGHER: "FTS is worse than TS on networks trained with {}",
    MIXED: "it depends on the network if trained with {}",
    OPEN: "no difference is shown on networks trained with {}",
    IDENTICAL: "FTS equals TS on networks trained with {}",
}
WORDS = {LOWER: "FTS better", HIGHER: "FTS worse"}


def answer_card(
    frame: pd.DataFrame, comparisons: pd.DataFrame, runs: Sequence[Mapping[str, str]], criterion: str
) -> list[dict[str, Any]]:
    """Return what to say about the networks of each origin, JSON-ready; empty if no run has FTS and TS.

    `frame` are the metrics, `comparisons` those of `sample_comparisons`; `criterion` is what fits were chosen
    by where none were chosen by log-loss. Log-loss comes first, ECE second.
    """
    effects = family_effects(comparisons, runs)
    placed = with_origins(frame, runs)
    chosen_by = arena_criterion(placed, criterion)
    cards = []
    for origin in ORIGINS:
        here = [found for found in effects if found.origin == origin]
        if here:
            one = arena_of(placed[placed["origin"] == origin], chosen_by)
            cards.append(_card(origin, here, one))
    return cards


def _card(origin: str, effects: Sequence[FamilyEffect], one: Arena | None) -> dict[str, Any]:
    noun = "setting" if origin == TRAINED else "network"
    columns = _card_columns(effects)
    sentences = [
        "" if one is None else _use_sentence(one, effects, noun),
        *(_measure_sentence(effects, *column) for column in columns),
        _selection_sentence(effects),
    ]
    families = list(dict.fromkeys(found.family for found in effects))
    return {
        "origin": origin,
        "settings": sum(found.effect.settings for found in _of(effects, *columns[0])),
        "runs": sum(found.effect.runs for found in _of(effects, *columns[0])),
        "text": " ".join(filter(None, sentences)),
        "columns": [
            {
                "metric": METRICS[metric].heading,
                "name": METRICS[metric].name,
                "criterion": METRICS[criterion].name,
            }
            for metric, criterion in columns
        ],
        "rows": [
            _card_row([found for found in effects if found.family == family], columns) for family in families
        ],
    }


def _card_columns(effects: Iterable[FamilyEffect]) -> list[tuple[str, str]]:
    """Return metric and criterion of the card's columns: each by its own criterion, else by the first."""
    known = list(dict.fromkeys((found.metric, found.criterion) for found in effects))
    columns = []
    for metric in (LEADING, SECOND):
        own = [pair for pair in known if pair[0] == metric]
        columns.append(next((pair for pair in own if pair[1] == metric), own[0]))
    return columns


def _of(effects: Iterable[FamilyEffect], metric: str, criterion: str) -> list[FamilyEffect]:
    return [found for found in effects if (found.metric, found.criterion) == (metric, criterion)]


def _card_row(effects: Sequence[FamilyEffect], columns: Iterable[tuple[str, str]]) -> dict[str, Any]:
    found = [_of(effects, *column) for column in columns]
    leading = found[0][0] if found[0] else effects[0]
    best, against = leading.best, leading.best_effects.get("ts")
    return {
        "family": leading.family,
        "settings": leading.effect.settings,
        "runs": leading.effect.runs,
        "cells": [
            _effect_cell(here[0].effect, METRICS[here[0].metric])
            | {"verdict": WORDS.get(here[0].effect.verdict, here[0].effect.verdict)}
            if here
            else None
            for here in found
        ],
        "best": METHODS[best].label,
        "best_cell": None if against is None else _effect_cell(against, METRICS[leading.metric]),
    }


def _effect_cell(effect: Effect, metric: Metric) -> dict[str, Any]:
    return {
        "value": effect.difference,
        "difference": _points(effect.difference, metric),
        "interval": _range(effect.interval, metric),
        "z": format_number(effect.z, 1),
        "wins": effect.wins,
        "runs": effect.runs,
    }


def _points(value: float, metric: Metric) -> str:
    return format_number(value * metric.factor, metric.difference_decimals, signed=True)


def _range(interval: Interval, metric: Metric) -> str:
    return f"{_points(interval.low, metric)} to {_points(interval.high, metric)}"


def _use_sentence(one: Arena, effects: Iterable[FamilyEffect], noun: str) -> str:
    """Return which calibrator to use: the first by log-loss, if it beats TS; and what is as good."""
    best, metric = one.contestants[0], METRICS[LEADING]
    name, number = METHODS[best.method].label, len(one.contestants)
    if one.settings == 1:
        text = f"{name} has the lowest {metric.name} of {number} calibrators on 1 {noun}"
    else:
        text = (
            f"{name} ranks first by {metric.name} (mean rank {best.rank:.1f} of {number} calibrators over "
            f"{one.settings} {noun}s)"
        )
    if best.comparison is not None:
        text += f"; its difference from TS is {_points(best.comparison.mean_difference, metric)}"
        if best.interval is not None:
            text += f" (95 % interval over {noun}s {_range(best.interval, metric)})"
        text += f", lower on {best.comparison.wins} of {one.settings}"
    shown = best.method == "ts" or _beats_ts(best, effects)
    over = "No" if one.settings == 1 else f"Over all {noun}s, no"
    text = f"Use {name}. {text}." if shown else f"{over} calibrator is shown to beat TS. {text}."
    others = [METHODS[other.method].label for other in one.contestants[1:] if other.joined]
    if one.ranking is None:
        return text
    if others:
        return f"{text} Nemenyi's test does not separate it from {joined_names(others)}."
    return f"{text} Nemenyi's test separates it from all others."


def _beats_ts(best: Contestant, effects: Iterable[FamilyEffect]) -> bool:
    """Return whether a calibrator has a lower log-loss than TS, over networks or on the only one."""
    if best.interval is not None:
        return best.interval.high < 0
    found = [one.best_effects.get("ts") for one in _of(effects, LEADING, LEADING) if one.best == best.method]
    return any(effect is not None and effect.verdict == LOWER for effect in found)


def _measure_sentence(effects: Iterable[FamilyEffect], metric: str, criterion: str) -> str:
    """Return for which losses FTS is better, worse or neither, by one metric."""
    found = _of(effects, metric, criterion)
    by_verdict = {
        verdict: [one.family for one in found if one.effect.verdict == verdict] for verdict in PHRASES
    }
    parts = [PHRASES[verdict].format(joined_names(names)) for verdict, names in by_verdict.items() if names]
    names = f"{METRICS[metric].name} (chosen by {METRICS[criterion].name})"
    depends = " The answer depends on the training loss." if len(parts) > 1 and metric == LEADING else ""
    return f"By {names}, {'; '.join(parts)}.{depends}"


def _selection_sentence(effects: Iterable[FamilyEffect]) -> str:
    """Return for which losses FTS chosen by ECE has the higher log-loss; nothing if there are none."""
    worse = [one.family for one in _of(effects, LEADING, SECOND) if one.effect.verdict == HIGHER]
    if not worse:
        return ""
    return (
        f"Chosen by {METRICS[SECOND].name}, FTS has a higher {METRICS[LEADING].name} than TS on networks "
        f"trained with {joined_names(worse)}: choose its parameters by {METRICS[LEADING].name}."
    )
