"""The level of intervals: its default, how it is worded, and what follows from it."""

from dataclasses import dataclass
from statistics import NormalDist

CONFIDENCE = 0.95
"""Level of intervals where no configuration says otherwise."""
NORMAL_HALF_WIDTH = 1.959963984540054
"""Half the width of a normal interval of that level, in standard errors."""


@dataclass(frozen=True)
class Interval:
    """A two-sided interval."""

    low: float
    high: float


def level_text(confidence: float) -> str:
    """Return a level as people read it: 95 %, 99.5 %."""
    return f"{100 * confidence:.6g} %"


def tails(confidence: float) -> tuple[float, float]:
    """Return the quantiles that bound a two-sided interval."""
    return (1 - confidence) / 2, (1 + confidence) / 2


def at_level(low: float, high: float, confidence: float) -> tuple[float, float]:
    """Return a normal interval of another level, given that of the default level."""
    centre, half = (low + high) / 2, (high - low) / 2
    half *= NormalDist().inv_cdf(tails(confidence)[1]) / NORMAL_HALF_WIDTH
    return centre - half, centre + half
