"""Folds for cross-validation."""

import numpy as np
from numpy.typing import NDArray


def stratified_folds(labels: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the fold of each sample (n,), drawn with a fixed seed, each class spread evenly over folds."""
    drawn = np.random.default_rng(0).permutation(len(labels))
    folds = np.empty(len(labels), dtype=np.int64)
    folds[drawn[np.argsort(labels[drawn], kind="stable")]] = np.arange(len(labels)) % count
    return folds
