"""Intervals that every room states at the same level, 95 %."""

NORMAL_HALF_WIDTH = 1.959963984540054
"""Half the width of a normal 95 % interval, in standard errors."""
