"""How few samples a split may have."""

FEWEST_EVALUATED = 2
"""Samples of a split that is evaluated: the report's intervals resample it."""
FEWEST_SAMPLES = {"train": 1, "val": FEWEST_EVALUATED, "test": FEWEST_EVALUATED}
