"""All calibrators ranked over networks, by log-loss first and ECE second."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from focalcal.reporting.records.measurements import SETTING, rows_of_fits, shown_fits
from focalcal.reporting.statistics.families import LEADING
from focalcal.reporting.statistics.tests import (
    Interval,
    PairedComparison,
    Ranking,
    adjust,
    average_ranks,
    compare_runs,
    rank_methods,
    student_interval,
)

SECOND = "ece"
"""The metric beside log-loss, which leads: a constant confidence can have a perfect ECE."""
BASELINE = "ts"


@dataclass(frozen=True)
class Contestant:
    """One calibrator of the arena; differences are from temperature scaling, intervals over settings."""

    method: str
    rank: float
    """Mean rank by log-loss, 1 is the best."""
    nll: float
    ece: float
    ece_rank: float
    joined: bool | None
    """Whether Nemenyi's test does not separate it from the best; None if there is too little to test."""
    comparison: PairedComparison | None
    """Log-loss against temperature scaling, one pair per setting; None for temperature scaling itself."""
    interval: Interval | None
    ece_difference: float | None
    ece_interval: Interval | None

    @property
    def win_rate(self) -> float | None:
        """Return the share of settings with a lower log-loss than temperature scaling, ties counting half."""
        found = self.comparison
        return None if found is None else (found.wins + found.ties / 2) / found.runs


@dataclass(frozen=True)
class Arena:
    """The calibrators that all settings have, best first, with what Friedman's and Nemenyi's tests say."""

    contestants: tuple[Contestant, ...]
    settings: int
    criterion: str
    ranking: Ranking | None
    """None for fewer than three calibrators or two settings."""
    unranked: tuple[str, ...]
    """Calibrators that some setting lacks."""


def arena_criterion(frame: pd.DataFrame, fallback: str) -> str:
    """Return what the ranked fits were chosen by: log-loss if there are such fits, else `fallback`."""
    return LEADING if LEADING in set(frame["criterion"]) else fallback


def arena_of(frame: pd.DataFrame, criterion: str) -> Arena | None:
    """Return the arena of the shown calibrators chosen by one criterion or not fitted at all.

    Scores are means over seeds, one per setting (dataset, model, loss). None without two calibrators.
    """
    fits = [fit for fit in shown_fits(frame, criterion) if fit[1] in {"", criterion}]
    leading = _setting_scores(frame, fits, LEADING)
    complete = leading.dropna(axis="columns")
    if len(complete.columns) < 2:
        return None
    methods, scores = list(complete.columns), complete.to_numpy()
    second = _setting_scores(frame, fits, SECOND).reindex(index=complete.index, columns=methods)
    ranks, ece_ranks = average_ranks(scores), average_ranks(second.to_numpy())
    ranking = rank_methods(scores, methods) if len(methods) > 2 and len(scores) > 1 else None
    best = methods[int(np.argmin(ranks))]
    compared = _compared(complete)
    contestants = []
    for index, method in enumerate(methods):
        gaps, ece_gaps = _gaps(complete, method), _gaps(second, method)
        contestants.append(
            Contestant(
                method=method,
                rank=float(ranks[index]),
                nll=float(complete[method].mean()),
                ece=float(second[method].mean()),
                ece_rank=float(ece_ranks[index]),
                joined=None if ranking is None else _with_best(ranking, best, method),
                comparison=compared.get(method),
                interval=None if gaps is None else student_interval(gaps),
                ece_difference=None if ece_gaps is None else float(ece_gaps.mean()),
                ece_interval=None if ece_gaps is None else student_interval(ece_gaps),
            )
        )
    contestants.sort(key=lambda one: one.rank)
    unranked = tuple(method for method in leading.columns if method not in methods)
    return Arena(tuple(contestants), len(scores), criterion, ranking, unranked)


def _setting_scores(frame: pd.DataFrame, fits: list[tuple[str, str]], metric: str) -> pd.DataFrame:
    """Return test scores, one row per setting and one column per method; NaN where a setting lacks one."""
    rows = rows_of_fits(frame, fits, metric)
    scores = rows.pivot_table(index=SETTING, columns="method", values="value", aggfunc="mean")
    return scores.reindex(columns=[method for method, _ in fits if method in scores.columns])


def _compared(scores: pd.DataFrame) -> dict[str, PairedComparison]:
    """Return each method against temperature scaling, Holm-corrected; nothing without temperature scaling."""
    if BASELINE not in scores:
        return {}
    others = [method for method in scores.columns if method != BASELINE]
    settings = list(scores.index)
    found = [
        compare_runs(scores[method].to_numpy(), scores[BASELINE].to_numpy(), settings) for method in others
    ]
    return dict(zip(others, adjust(found), strict=True))


def _gaps(scores: pd.DataFrame, method: str) -> np.ndarray | None:
    """Return a method's scores minus those of temperature scaling (n,); None for the latter itself."""
    if method == BASELINE or BASELINE not in scores:
        return None
    return (scores[method] - scores[BASELINE]).to_numpy()


def _with_best(ranking: Ranking, best: str, method: str) -> bool:
    return method == best or any({best, method} <= set(group) for group in ranking.cliques)
