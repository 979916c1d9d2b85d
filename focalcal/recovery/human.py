"""Human label distributions as the posterior of real images: the user's own file or a download."""

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from focalcal.common import npz
from focalcal.common.errors import UserError

ARRAY = "probs"
SUM_TOLERANCE = 1e-5
"""Files often hold float32."""
LEAST_AGREEMENT = 0.5
"""Share of samples whose most frequent human label is the official one; about 1 / K if rows are shuffled."""


def read_human_labels(path: str | os.PathLike[str], labels: NDArray[np.int64], classes: int) -> NDArray:
    """Return the distributions of a file, float64 (n, classes), for the test samples of one run.

    `labels` (n,) are the test labels of the run. Raise a UserError if the distributions do not fit them.
    """
    probs = read_distributions(path)
    allowed = (len(labels), classes)
    if probs.shape != allowed:
        raise UserError(
            f"human labels {path} have shape {probs.shape}; allowed: {allowed}, one row per test sample "
            f"in the order of the test labels"
        )
    agreement = float((probs.argmax(axis=1) == labels).mean())
    if agreement < LEAST_AGREEMENT:
        raise UserError(
            f"human labels {path} agree with {agreement:.0%} of the test labels; allowed: "
            f"{LEAST_AGREEMENT:.0%} or more; bring their rows into the order of the test samples"
        )
    return probs


def read_distributions(path: str | os.PathLike[str]) -> NDArray[np.float64]:
    """Return the distributions of a `.npy` file, or of array `probs` of a `.npz` file, float64 (n, classes).

    Raise a UserError if they are not distributions.
    """
    probs = _read_array(Path(path))
    if probs.dtype.kind not in "fiu" or probs.ndim != 2:
        raise UserError(
            f"human labels {path} have shape {probs.shape} and dtype {probs.dtype}; allowed: numbers, one "
            f"row per test sample, one column per class"
        )
    probs = probs.astype(np.float64)
    sums = probs.sum(axis=1)
    if not (np.all(probs >= 0) and np.all(np.abs(sums - 1) <= SUM_TOLERANCE)):
        raise UserError(
            f"human labels {path} have row sums from {sums.min():g} to {sums.max():g}, smallest value "
            f"{probs.min():g}; allowed: rows of shares that sum to 1; divide counts by their row's sum"
        )
    return probs / sums[:, None]


def _read_array(path: Path) -> NDArray:
    if path.suffix == ".npz":
        arrays = npz.read_npz(path)
        if ARRAY not in arrays:
            raise UserError(
                f"human labels {path} have the arrays {', '.join(sorted(arrays)) or 'none'}; "
                f"needed: {ARRAY!r}"
            )
        return arrays[ARRAY]
    try:
        return np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise UserError(f"human labels {path} does not exist; correct recovery.human_labels") from None
    except (ValueError, EOFError, OSError) as error:
        raise UserError(f"human labels {path} cannot be read as a NumPy array: {error}") from None
