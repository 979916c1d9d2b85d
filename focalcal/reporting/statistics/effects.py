"""The effect of one calibrator against another over several networks, from the comparisons of each run.

A run's comparison has the difference of two scores and its standard error over test samples. Pooled, the
difference is the mean over settings (dataset, model, loss) of the mean over seeds. Two things are said about
it. For *these* networks: an interval, z and p over test samples and seeds; one run is enough for that. For a
*new* network of the same kind: Student's t over settings, which takes at least two of them.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from focalcal.common.intervals import NORMAL_HALF_WIDTH
from focalcal.reporting.records.measurements import RUN, SETTING
from focalcal.reporting.statistics.tests import (
    ALPHA,
    HIGHER,
    LOWER,
    OPEN,
    TIE,
    Interval,
    holm,
    normal_p,
    student_interval,
)

IDENTICAL, MIXED = "identical", "depends on the network"
"""What an effect can also be: no difference at all, or clear differences of both signs."""


@dataclass(frozen=True)
class Effect:
    """The pooled difference of two calibrators' scores; negative: the first has the lower score."""

    runs: int
    settings: int
    difference: float
    z: float
    """The difference, bias removed, in standard errors over test samples and seeds."""
    interval: Interval
    """For these networks."""
    new_interval: Interval | None
    """For a new network; None for a single setting."""
    wins: int
    ties: int
    losses: int
    clear_wins: int
    """Runs in which the first is lower beyond chance over test samples, corrected for their number."""
    clear_losses: int
    adjusted_p: float | None = None

    @property
    def p_value(self) -> float:
        """Return the two-sided p of z."""
        return normal_p(self.z)

    @property
    def verdict(self) -> str:
        """Return `lower`, `higher`, `no difference shown`, `depends on the network` or `identical`.

        z has no largest value, so every verdict is within reach, however few the runs.
        """
        if self.ties == self.runs:
            return IDENTICAL
        if self.clear_wins and self.clear_losses:
            return MIXED
        p_value = self.p_value if self.adjusted_p is None else self.adjusted_p
        if p_value >= ALPHA:
            return OPEN
        return LOWER if self.z < 0 else HIGHER


def sample_comparisons(records: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the comparisons of the diagnostics of all runs: one row per run, pair, criterion and metric."""
    names = ["method", "against", "criterion", "metric", "value", "against_value", "difference", "low"]
    columns = [*RUN, *names, "high", "error", "z"]
    rows = [
        {**{key: str(record["run"][key]) for key in RUN}, **found}
        for record in records
        for found in record["comparisons"]
    ]
    return pd.DataFrame(rows, columns=columns)


def pooled_effect(rows: pd.DataFrame) -> Effect:
    """Return the effect of one pair, criterion and metric over its runs, one row each."""
    rows = rows.sort_values(RUN)
    settings = rows.groupby(SETTING, sort=True)
    weights = 1 / (settings.ngroups * settings["seed"].transform("size"))
    # Runs on one dataset share its test samples. Their errors are taken as fully correlated, which is the
    # worst case: the true error of a mean is never larger.
    of_samples = (weights * rows["error"]).groupby(rows["dataset"]).sum()
    of_seeds = (settings["difference"].var() / settings.size()).fillna(0.0).sum() / settings.ngroups**2
    error = math.sqrt(float((of_samples**2).sum()) + float(of_seeds))
    corrected = float((weights * rows["z"] * rows["error"]).sum())
    half = NORMAL_HALF_WIDTH * error
    difference = rows["difference"]
    clear = holm([normal_p(z) for z in rows["z"]]) < ALPHA
    return Effect(
        runs=len(rows),
        settings=settings.ngroups,
        difference=float((weights * difference).sum()),
        z=corrected / error if error > 0 else 0.0,
        interval=Interval(corrected - half, corrected + half),
        new_interval=student_interval(settings["difference"].mean().to_numpy()),
        wins=int((difference < -TIE).sum()),
        ties=int((difference.abs() <= TIE).sum()),
        losses=int((difference > TIE).sum()),
        clear_wins=int(np.sum(clear & (rows["z"] < 0))),
        clear_losses=int(np.sum(clear & (rows["z"] > 0))),
    )


def adjust_effects(effects: Sequence[Effect]) -> list[Effect]:
    """Return the effects with `adjusted_p` set by Holm's correction over all of them."""
    adjusted = holm([effect.p_value for effect in effects])
    return [
        replace(effect, adjusted_p=float(p_value)) for effect, p_value in zip(effects, adjusted, strict=True)
    ]
