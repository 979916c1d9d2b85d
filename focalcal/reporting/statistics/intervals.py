"""Confidence intervals of means over seeds."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import stdtrit

CONFIDENCE = 0.95


def seed_intervals(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return the mean of `value` over the seeds of each group, with its 95 % interval by Student's t.

    `rows` has one row per seed and `by` names the columns that make a group, which become the index. Columns:
    mean, half_width (NaN for a single seed), seeds.
    """
    groups = {key: group.to_numpy() for key, group in rows.groupby(list(by))["value"]}
    index = pd.MultiIndex.from_tuples(groups, names=by)
    mean = [np.mean(values) for values in groups.values()]
    deviation = [np.std(values, ddof=1) if len(values) > 1 else np.nan for values in groups.values()]
    seeds = np.array([len(values) for values in groups.values()], dtype=int)
    half_width = stdtrit(seeds - 1, (1 + CONFIDENCE) / 2) * np.array(deviation) / np.sqrt(seeds)
    table = pd.DataFrame({"mean": mean, "half_width": half_width, "seeds": seeds}, index)
    return table.astype({"mean": float, "seeds": "Int64"})
