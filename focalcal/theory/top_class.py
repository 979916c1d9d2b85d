"""Shared parts of Psi^gamma and its inverse: constants, row blocks and the top class's denominator."""

from collections.abc import Iterator

import numpy as np

MOST_NEGATIVE = -np.finfo(np.float64).max
SMALLEST_DIRECT_SUM = 1e-290
"""Below this, R is handled by its logarithm: 1/R would overflow and R itself lose digits."""
BLOCK_ELEMENTS = 1 << 15
"""Rows are processed in blocks of about this many numbers, so that temporaries stay in the cache
and their memory is used again, which the C library does not do for arrays of a megabyte."""


def row_blocks(rows: int, classes: int) -> Iterator[slice]:
    """Yield slices of rows with about `BLOCK_ELEMENTS` numbers each."""
    step = max(1, BLOCK_ELEMENTS // classes)
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def denominator_top(rest: np.ndarray, gamma: float) -> np.ndarray:
    """Return 1 + gamma B_top with B_top = log1p(R) / R, without cancellation down to gamma = -1."""
    if gamma >= 0:
        term = np.log1p(rest)
        return 1.0 + gamma * np.divide(term, rest, out=np.ones_like(term), where=rest > 0)
    return (1.0 + gamma) - gamma * one_minus_top_term(rest)


def one_minus_top_term(rest: np.ndarray) -> np.ndarray:
    """Return 1 - log1p(R) / R to relative rounding, by the atanh series of log1p for R <= 1."""
    small = np.minimum(rest, 1.0)
    half = small / (2.0 + small)
    square = half * half
    series = np.zeros_like(half)
    for power in range(37, 1, -2):
        series = series * square + 1.0 / power
    by_series = half * (1.0 - 2.0 * half / (2.0 + small) * series)
    safe = np.maximum(rest, 1.0)
    return np.where(rest <= 1.0, by_series, 1.0 - np.log1p(safe) / safe)
