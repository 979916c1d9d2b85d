"""When does FTS pay? Its effect against TS by origin of the networks and family of training losses."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.calibration.resampling import COMPARED_METRICS
from focalcal.reporting.records.measurements import LEADING, RUN, SETTING
from focalcal.reporting.statistics.comparisons import HEADLINE
from focalcal.reporting.statistics.effects import Effect, adjust_effects, pooled_effect
from focalcal.training.appearance import loss_family, loss_order

PUBLISHED, IMPORTED, TRAINED = "published networks", "imported logits", "trained here"
ORIGINS = (PUBLISHED, IMPORTED, TRAINED)
"""Where networks come from, in the order of the report. They are judged apart: pooling hides the answer."""


@dataclass(frozen=True)
class FamilyEffect:
    """What FTS, and the best calibrator, change for networks of one origin and family of losses."""

    origin: str
    family: str
    metric: str
    """What the effect is measured by."""
    criterion: str
    """What the fits were chosen by on validation data."""
    effect: Effect
    """FTS against TS."""
    best: str
    """The calibrator with the lowest mean log-loss among those chosen by the same criterion."""
    best_effects: Mapping[str, Effect]
    """The best calibrator against TS and against FTS, by the other's id; without itself."""


def run_origin(run: Mapping[str, str]) -> str:
    """Return the origin of a run, given its row of runs.csv."""
    if run.get("published"):
        return PUBLISHED
    return IMPORTED if run["imported"] else TRAINED


def with_origins(frame: pd.DataFrame, runs: Iterable[Mapping[str, str]]) -> pd.DataFrame:
    """Return a frame of rows about runs with a column `origin`."""
    origins = {tuple(run[key] for key in RUN): run_origin(run) for run in runs}
    keys = zip(*(frame[key].tolist() for key in RUN), strict=True)
    return frame.assign(origin=[origins[key] for key in keys])


def family_effects(comparisons: pd.DataFrame, runs: Iterable[Mapping[str, str]]) -> list[FamilyEffect]:
    """Return the effect for each origin, metric, criterion and family, in the order of the report.

    `comparisons` are those of `sample_comparisons`. Holm's correction covers the families of one origin,
    metric and criterion.
    """
    families = {loss: loss_family(loss) for loss in sorted(comparisons["loss"].unique(), key=loss_order)}
    order = {family: number for number, family in enumerate(families.values())}
    rows = with_origins(comparisons, runs).assign(family=comparisons["loss"].map(families))
    chosen_by = set(rows["criterion"].unique())
    criteria = [name for name in METRICS if name in chosen_by]
    groups = dict(list(rows.groupby(["origin", "criterion", "family"])))
    best = {
        key: best_method(group[group["metric"] == LEADING])
        for key, group in groups.items()
        if set(HEADLINE) <= set(group["method"].unique())
    }
    found = []
    for origin, metric, criterion in product(ORIGINS, COMPARED_METRICS, criteria):
        keys = [
            key for key in best if key[:2] == (origin, criterion) and metric in groups[key]["metric"].unique()
        ]
        keys.sort(key=lambda key: order[key[2]])
        found += _corrected([_family_effect(groups[key], metric, best[key]) for key in keys])
    return found


def _corrected(found: Sequence[FamilyEffect]) -> list[FamilyEffect]:
    adjusted = adjust_effects([one.effect for one in found])
    return [replace(one, effect=effect) for one, effect in zip(found, adjusted, strict=True)]


def _family_effect(rows: pd.DataFrame, metric: str, best: str) -> FamilyEffect:
    """Return the effect by one metric, given the rows of one origin, criterion and family."""
    measured = rows[rows["metric"] == metric]
    effects = {other: _effect_of(measured, (best, other)) for other in reversed(HEADLINE) if other != best}
    first = rows.iloc[0]
    identity = (first["origin"], first["family"], metric, first["criterion"])
    return FamilyEffect(*identity, _effect_of(measured, HEADLINE), best, effects)


def _effect_of(rows: pd.DataFrame, pair: tuple[str, str]) -> Effect:
    return pooled_effect(rows[(rows["method"] == pair[0]) & (rows["against"] == pair[1])])


def best_method(rows: pd.DataFrame) -> str:
    """Return the method with the lowest mean score over settings; the first in the catalogue wins a tie.

    `rows` are comparisons by one metric. A method counts if every run with FTS or TS has it.
    """
    scores = pd.concat([rows[rows["against"] == other] for other in HEADLINE])
    scores = scores.drop_duplicates([*RUN, "method"])
    means = scores.groupby([*SETTING, "method"])["value"].mean().groupby(level="method").mean()
    counts = scores.groupby("method").size()
    everywhere = means[counts == counts[list(HEADLINE)].max()]
    return min(everywhere.index, key=lambda method: (everywhere[method], list(METHODS).index(method)))
