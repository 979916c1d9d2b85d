"""The answer card: which calibrator to use and when FTS pays, in sentences that follow from the numbers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS, Metric
from focalcal.reporting.records.measurements import LEADING, SECOND
from focalcal.reporting.statistics.arena import Arena, Contestant, arena_criterion, arena_of
from focalcal.reporting.statistics.effects import IDENTICAL, MIXED, Effect
from focalcal.reporting.statistics.families import (
    IMPORTED,
    ORIGINS,
    TRAINED,
    FamilyEffect,
    family_effects,
    with_origins,
)
from focalcal.reporting.statistics.tests import HIGHER, LOWER, OPEN, Interval
from focalcal.reporting.text import count_of, format_number, joined_names
from focalcal.training.appearance import IN_WORDS

PHRASES = {
    LOWER: "FTS is better than TS on networks trained with {}",
    HIGHER: "FTS is worse than TS on networks trained with {}",
    MIXED: "it depends on the network if trained with {}",
    OPEN: "no difference is shown on networks trained with {}",
    IDENTICAL: "FTS equals TS on networks trained with {}",
}
SHORT = {
    LOWER: "Yes, FTS is better.",
    HIGHER: "No, FTS is worse.",
    MIXED: "It depends on the network.",
    OPEN: "No difference is shown.",
    IDENTICAL: "They are identical.",
}
WORDS = {LOWER: "FTS better", HIGHER: "FTS worse"}
BEST_WORDS = {LOWER: "better", HIGHER: "worse"}
SIGNS = {LOWER: "good", HIGHER: "bad"}
Answer = tuple[str, str, str]
"""A question, its answer in a few words, and the numbers behind it."""


def answer_card(
    frame: pd.DataFrame,
    comparisons: pd.DataFrame,
    runs: Sequence[Mapping[str, str]],
    criterion: str,
    *,
    advised: bool = False,
) -> list[dict[str, Any]]:
    """Return what to say about the networks of each origin, JSON-ready; empty if no run has FTS and TS.

    `frame` are the metrics, `comparisons` those of `sample_comparisons`; `criterion` is what fits were chosen
    by where none were chosen by log-loss. Log-loss comes first, ECE second. Where the report has `advised`
    which calibrator to use for the user's own logits, their card does not answer that by test scores.
    """
    effects = family_effects(comparisons, runs)
    placed = with_origins(frame, runs)
    chosen_by = arena_criterion(placed, criterion)
    cards = []
    for origin in ORIGINS:
        here = [found for found in effects if found.origin == origin]
        if here:
            told = advised and origin == IMPORTED
            rows = placed[placed["origin"] == origin]
            one = None if told else arena_of(rows, chosen_by)
            cards.append(_card(origin, here, one, rows))
    return cards


def _card(
    origin: str, effects: Sequence[FamilyEffect], one: Arena | None, rows: pd.DataFrame
) -> dict[str, Any]:
    noun = "setting" if origin == TRAINED else "network"
    columns = _card_columns(effects)
    leading = _of(effects, *columns[0])
    answers = [
        None if one is None else _use_answer(one, effects, noun, rows),
        _fts_answer(leading),
        _sure_answer(leading, noun),
        _second_answer(effects, columns),
    ]
    families = list(dict.fromkeys(found.family for found in effects))
    return {
        "origin": origin,
        "networks": count_of(sum(found.effect.settings for found in leading), noun),
        "answers": [
            dict(zip(("question", "short", "text"), found, strict=True)) for found in answers if found
        ],
        "columns": [
            {
                "metric": METRICS[metric].heading,
                "name": METRICS[metric].name,
                "criterion": METRICS[criterion].name,
            }
            for metric, criterion in columns
        ],
        "rows": [
            _card_row([found for found in effects if found.family == family], columns, noun)
            for family in families
        ],
    }


def _card_columns(effects: Iterable[FamilyEffect]) -> list[tuple[str, str]]:
    """Return metric and criterion of the card's columns: log-loss by log-loss, ECE by log-loss, ECE by ECE.

    Where fits were chosen by neither, a metric stands with the first criterion there is.
    """
    known = list(dict.fromkeys((found.metric, found.criterion) for found in effects))
    wanted = [(LEADING, LEADING), (SECOND, LEADING), (SECOND, SECOND)]
    columns = []
    for metric in (LEADING, SECOND):
        there = [pair for pair in known if pair[0] == metric]
        columns += [pair for pair in wanted if pair in there] or there[:1]
    return columns


def _of(effects: Iterable[FamilyEffect], metric: str, criterion: str) -> list[FamilyEffect]:
    return [found for found in effects if (found.metric, found.criterion) == (metric, criterion)]


def _card_row(
    effects: Sequence[FamilyEffect], columns: Iterable[tuple[str, str]], noun: str
) -> dict[str, Any]:
    found = [_of(effects, *column) for column in columns]
    leading = found[0][0] if found[0] else effects[0]
    metric = METRICS[leading.metric]
    return {
        "family": leading.family,
        "settings": count_of(leading.effect.settings, noun),
        "runs": count_of(leading.effect.runs, "run"),
        "cells": [_effect_cell(here[0].effect, METRICS[here[0].metric]) if here else None for here in found],
        "best": METHODS[leading.best].label,
        "best_cells": [
            None if other is None else _effect_cell(other, metric, BEST_WORDS)
            for other in map(leading.best_effects.get, ("ts", "fts"))
        ],
    }


def _effect_cell(effect: Effect, metric: Metric, words: Mapping[str, str] = WORDS) -> dict[str, Any]:
    return {
        "value": effect.difference,
        "difference": _points(effect.difference, metric),
        "interval": _range(effect.interval, metric),
        "verdict": words.get(effect.verdict, effect.verdict),
        "detail": _clear_text(effect) if effect.verdict == MIXED else "",
        "sign": SIGNS.get(effect.verdict, ""),
    }


def _clear_text(effect: Effect) -> str:
    """Return in how many runs the difference is beyond chance, either way."""
    return f"clearly lower in {effect.clear_wins}, higher in {effect.clear_losses} of {effect.runs} runs"


def _points(value: float, metric: Metric) -> str:
    return format_number(value * metric.factor, metric.difference_decimals, signed=True)


def _range(interval: Interval, metric: Metric) -> str:
    return f"{_points(interval.low, metric)} to {_points(interval.high, metric)}"


def _use_answer(one: Arena, effects: Iterable[FamilyEffect], noun: str, rows: pd.DataFrame) -> Answer:
    """Return which calibrator is first by log-loss, if it beats TS, on what; what is as good, or unranked."""
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
            text += f" (95 % interval for a new {noun} {_range(best.interval, metric)})"
        text += f", lower on {best.comparison.wins} of {one.settings}"
    text += "."
    others = [METHODS[other.method].label for other in one.contestants[1:] if other.joined]
    if one.ranking is not None:
        text += (
            f" Nemenyi's test does not separate it from {joined_names(others)}."
            if others
            else " Nemenyi's test separates it from all others."
        )
    unranked = _unranked(one, rows)
    if unranked:
        text += f" Fitted but not ranked: {joined_names(unranked)}."
    if best.method == "ts":
        short = "TS is enough."
    else:
        full, datasets = METHODS[best.method].name, sorted(rows["dataset"].unique())
        where = f"on these {noun}s ({', '.join(datasets)})" if len(datasets) < 4 else f"on these {noun}s"
        short = (
            f"{full[0].upper()}{full[1:]}, {where}."
            if _beats_ts(best, effects)
            else "TS: no calibrator is shown to beat it."
        )
    return "Which calibrator?", short, text


def _unranked(one: Arena, rows: pd.DataFrame) -> list[str]:
    """Return the recommendable calibrators that were fitted by the same criterion and are not ranked."""
    ranked = {found.method for found in one.contestants}
    fitted = set(rows.loc[rows["criterion"] == one.criterion, "method"])
    return [
        method.label
        for method in METHODS.values()
        if method.id in fitted - ranked and method.recommendable and not method.needs_training_gamma
    ]


def _beats_ts(best: Contestant, effects: Iterable[FamilyEffect]) -> bool:
    """Return whether a calibrator has a lower log-loss than TS, over networks or on the only one."""
    if best.interval is not None:
        return best.interval.high < 0
    found = [one.best_effects.get("ts") for one in _of(effects, LEADING, LEADING) if one.best == best.method]
    return any(effect is not None and effect.verdict == LOWER for effect in found)


def _fts_answer(found: Sequence[FamilyEffect]) -> Answer:
    """Return whether FTS is better than TS by the leading metric, and what that depends on."""
    verdicts = {one.effect.verdict for one in found}
    if len(verdicts - {IDENTICAL}) > 1:
        short = "It depends on the training loss."
    else:
        (verdict,) = (verdicts - {IDENTICAL}) or {IDENTICAL}
        short = SHORT[verdict]
    text = _verdicts_text(found)
    return "FTS instead of TS?", short, f"{text[0].upper()}{text[1:]}"


def _sure_answer(found: Sequence[FamilyEffect], noun: str) -> Answer:
    """Return how many runs are behind the answer, and in how many the difference is beyond chance."""
    total = {
        name: sum(getattr(one.effect, name) for one in found)
        for name in ("runs", "settings", "wins", "ties", "clear_wins", "clear_losses")
    }
    metric = METRICS[found[0].metric].name
    equal = f", the same in {total['ties']}" if total["ties"] else ""
    text = (
        f"FTS has the lower {metric} in {total['wins']} of {count_of(total['runs'], 'run')}{equal}. Beyond "
        f"chance over test samples it is lower in {total['clear_wins']} and higher in "
        f"{total['clear_losses']}. Verdicts are for these {noun}s."
    )
    short = f"{count_of(total['settings'], noun)}, {count_of(total['runs'], 'run')}."
    return "How sure is that?", short, text


def _second_answer(effects: Sequence[FamilyEffect], columns: Sequence[tuple[str, str]]) -> Answer:
    """Return what ECE says, by each criterion of the card, and whether choosing by it harms log-loss."""
    texts = [
        f"Chosen by {METRICS[criterion].name}, {_verdicts_text(_of(effects, metric, criterion))}"
        for metric, criterion in columns
        if metric == SECOND
    ]
    worse = [one.family for one in _of(effects, LEADING, SECOND) if one.effect.verdict == HIGHER]
    if worse:
        texts.append(
            f"Chosen by {METRICS[SECOND].name}, FTS has a higher {METRICS[LEADING].name} than TS on networks "
            f"trained with {_families_text(worse)}: choose its parameters by {METRICS[LEADING].name}."
        )
    return f"And by {METRICS[SECOND].name}?", "", " ".join(texts)


def _verdicts_text(found: Sequence[FamilyEffect]) -> str:
    """Return for which losses FTS is better, worse or neither, by one metric and criterion."""
    by_verdict = {
        verdict: [one.family for one in found if one.effect.verdict == verdict] for verdict in PHRASES
    }
    parts = [PHRASES[verdict].format(_families_text(names)) for verdict, names in by_verdict.items() if names]
    return f"{'; '.join(parts)}."


def _families_text(families: Sequence[str]) -> str:
    return joined_names([IN_WORDS.get(family, family) for family in families])
