"""The splits of a dataset, and the fewest samples that each may have."""

SPLITS = ("train", "val", "test")
FEWEST_SAMPLES = {"train": 1, "val": 2, "test": 2}
"""The confidence intervals of the report resample validation and test samples, which takes at least two."""
