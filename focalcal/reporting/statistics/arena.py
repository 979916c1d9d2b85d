"""All calibrators ranked over networks, by log-loss first and ECE second."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from focalcal.reporting.records.measurements import LEADING, SECOND, SETTING, rows_of_fits, shown_fits
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

BASELINE = "ts"


@dataclass(frozen=True)
class Contestant:
    """One calibrator of the arena; differences are from the baseline, intervals over the arena's units."""

    method: str
    rank: float
    """Mean rank by log-loss, 1 is the best."""
    nll: float
    ece: float
    ece_rank: float
    joined: bool | None
    """Whether Nemenyi's test does not separate it from the best; None if there is too little to test."""
    comparison: PairedComparison | None
    """Log-loss against the baseline, one pair per unit; None for the baseline itself."""
    interval: Interval | None
    ece_difference: float | None
    ece_interval: Interval | None
    firsts: int
    """Units in which no calibrator has a lower log-loss."""

    @property
    def win_rate(self) -> float | None:
        """Return the share of units with a lower log-loss than the baseline, ties counting half."""
        found = self.comparison
        return None if found is None else (found.wins + found.ties / 2) / found.runs


@dataclass(frozen=True)
class Arena:
    """The calibrators that all units have, best first, with what Friedman's and Nemenyi's tests say."""

    contestants: tuple[Contestant, ...]
    settings: int
    """Number of units: settings or datasets."""
    criterion: str
    ranking: Ranking | None
    """None for fewer than three calibrators or two settings."""
    unranked: tuple[str, ...]
    """Calibrators that some setting lacks."""


def arena_criterion(frame: pd.DataFrame, fallback: str) -> str:
    """Return what the ranked fits were chosen by: log-loss if there are such fits, else `fallback`."""
    return LEADING if LEADING in set(frame["criterion"]) else fallback


def arena_of(
    frame: pd.DataFrame,
    criterion: str,
    *,
    unit: Sequence[str] = SETTING,
    baseline: str = BASELINE,
    gamma_known: bool = False,
) -> Arena | None:
    """Return the arena of the shown calibrators chosen by one criterion or not fitted at all.

    Scores are means over seeds, one per setting (dataset, model, loss); with another `unit`, such as the
    dataset, means of those over its settings. With `gamma_known`, calibrators that need the gamma of the
    training loss compete too. None without two calibrators.
    """
    fits = shown_fits(frame, criterion, gamma_known=gamma_known)
    fits = [fit for fit in fits if fit[1] in {"", criterion}]
    leading = _unit_scores(frame, fits, LEADING, unit)
    complete = leading.dropna(axis="columns")
    if len(complete.columns) < 2:
        return None
    methods, scores = list(complete.columns), complete.to_numpy()
    second = _unit_scores(frame, fits, SECOND, unit).reindex(index=complete.index, columns=methods)
    ranks, ece_ranks = average_ranks(scores), average_ranks(second.to_numpy())
    ranking = rank_methods(scores, methods) if len(methods) > 2 and len(scores) > 1 else None
    best = methods[int(np.argmin(ranks))]
    compared = _compared(complete, baseline)
    firsts = (scores <= scores.min(axis=1, keepdims=True)).sum(axis=0)
    contestants = []
    for index, method in enumerate(methods):
        gaps, ece_gaps = _gaps(complete, method, baseline), _gaps(second, method, baseline)
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
                firsts=int(firsts[index]),
            )
        )
    contestants.sort(key=lambda one: one.rank)
    unranked = tuple(method for method in leading.columns if method not in methods)
    return Arena(tuple(contestants), len(scores), criterion, ranking, unranked)


def _unit_scores(
    frame: pd.DataFrame, fits: list[tuple[str, str]], metric: str, unit: Sequence[str]
) -> pd.DataFrame:
    """Return test scores, one row per unit and one column per method; NaN where a setting lacks one."""
    rows = rows_of_fits(frame, fits, metric)
    scores = rows.pivot_table(index=SETTING, columns="method", values="value", aggfunc="mean")
    if list(unit) != SETTING:
        scores = scores.groupby(level=list(unit)).mean().where(scores.notna().groupby(level=list(unit)).all())
    return scores.reindex(columns=[method for method, _ in fits if method in scores.columns])


def _compared(scores: pd.DataFrame, baseline: str) -> dict[str, PairedComparison]:
    """Return each method against the baseline, Holm-corrected; nothing without the baseline."""
    if baseline not in scores:
        return {}
    others = [method for method in scores.columns if method != baseline]
    units = list(scores.index)
    found = [compare_runs(scores[method].to_numpy(), scores[baseline].to_numpy(), units) for method in others]
    return dict(zip(others, adjust(found), strict=True))


def _gaps(scores: pd.DataFrame, method: str, baseline: str) -> np.ndarray | None:
    """Return a method's scores minus those of the baseline (n,); None for the latter itself."""
    if method == baseline or baseline not in scores:
        return None
    return (scores[method] - scores[baseline]).to_numpy()


def _with_best(ranking: Ranking, best: str, method: str) -> bool:
    return method == best or any({best, method} <= set(group) for group in ranking.cliques)
