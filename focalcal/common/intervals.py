"""Intervals that every room states at the same level, 95 %."""

from dataclasses import dataclass

CONFIDENCE = 0.95
TAILS = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
"""The quantiles that bound an interval."""
NORMAL_HALF_WIDTH = 1.959963984540054
"""Half the width of a normal 95 % interval, in standard errors."""


@dataclass(frozen=True)
class Interval:
    """A two-sided 95 % interval."""

    low: float
    high: float

    def contains(self, value: float) -> bool:
        """Return whether `value` lies in the closed interval."""
        return self.low <= value <= self.high
