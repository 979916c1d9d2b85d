"""Confidence intervals of means over seeds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

CONFIDENCE = 0.95


@dataclass(frozen=True)
class MeanInterval:
    """A mean over seeds with the half-width of its confidence interval, None for a single seed."""

    mean: float
    half_width: float | None
    seeds: int


def mean_interval(values: Sequence[float]) -> MeanInterval:
    """Return the mean over seeds and its 95 % interval by Student's t."""
    mean, seeds = float(np.mean(values)), len(values)
    if seeds < 2:
        return MeanInterval(mean, None, seeds)
    quantile = float(stdtrit(seeds - 1, (1 + CONFIDENCE) / 2))
    return MeanInterval(mean, quantile * float(np.std(values, ddof=1)) / math.sqrt(seeds), seeds)
