"""Piecewise polynomials of f(v) - 1, f(v) = h(v) / v, in u = -log v: what the compiled kernels know of Psi.

f(v) = (1-v)^-gamma / (1 + gamma B(v)), B(v) = -v log v / (1-v), is needed for all classes but the most
probable one, so for v <= 1/2, u >= log 2. A segment is the set of u with the same exponent and leading binary
digits: near v = 1/2, where f bends most, segments are short, and finding the segment of a number takes a
shift.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from focalcal.calibration.catalogue import LARGEST_GAMMA, SMALLEST_GAMMA

LANES = 4
"""Gammas that the kernels treat at once."""
TERMS = 12
"""Terms of a polynomial, a multiple of LANES."""
TOLERANCE = 1e-12
"""Largest relative error of f that is accepted."""
SMALLEST_U, LARGEST_U = 0.5, 64.0
FEWEST_DIGITS = 2
"""Leading binary digits of the coarsest segments; gamma 5 needs 2, gamma 100 needs 5."""


@dataclass(frozen=True)
class FocalTable:
    """Polynomials of several gammas on common segments."""

    coefficients: NDArray[np.float64]
    """(segments, TERMS, gammas), of powers of t in [-1, 1]."""
    grid: NDArray[np.float64]
    """(segments, 3): upper end, middle, and 2 / width."""
    shift: int
    """A segment's number is the bits of u, shifted right by this ..."""
    first: int
    """... minus this."""


def build(gammas: Sequence[float]) -> FocalTable:
    """Return the table with the fewest segments that is accurate for all gammas, each from -1 to 100."""
    check_gammas(gammas)
    digits = FEWEST_DIGITS
    table = _build(gammas, digits)
    while _error(gammas, table) > TOLERANCE:
        digits += 1
        table = _build(gammas, digits)
    return table


def in_lanes(coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return coefficients (..., segments, TERMS, gammas) as the kernels want them.

    That is (..., segments, groups, TERMS, LANES): gammas in groups of LANES, the last filled up with zeros.
    """
    *leading, gammas = coefficients.shape
    groups = -(-gammas // LANES)
    padded = np.zeros((*leading, groups * LANES))
    padded[..., :gammas] = coefficients
    return np.ascontiguousarray(np.swapaxes(padded.reshape(*leading, groups, LANES), -3, -2))


def check_gammas(gammas: Sequence[float]) -> None:
    """Raise ValueError unless all gammas are within bounds."""
    low, high = np.min(gammas), np.max(gammas)
    if not (low >= SMALLEST_GAMMA and high <= LARGEST_GAMMA):
        raise ValueError(
            f"gamma has values from {low} to {high}; expected {SMALLEST_GAMMA:g} to {LARGEST_GAMMA:g}"
        )


def focal_factor(u: NDArray[np.float64], gamma: float) -> NDArray[np.float64]:
    """Return f(v) - 1 at v = exp(-u), u >= log 2, without cancellation for small v."""
    v = np.exp(-u)
    return np.expm1(-gamma * np.log1p(-v) - np.log1p(gamma * v * u / -np.expm1(-u)))


def _build(gammas: Sequence[float], digits: int) -> FocalTable:
    octaves = int(np.log2(LARGEST_U / SMALLEST_U))
    steps = 1.0 + np.arange(2**digits) / 2**digits
    edges = np.append((SMALLEST_U * 2.0 ** np.arange(octaves)[:, None] * steps).ravel(), LARGEST_U)
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    nodes = np.cos(np.pi * (np.arange(TERMS) + 0.5) / TERMS)
    to_powers = _powers_from_chebyshev() @ np.linalg.inv(chebyshev.chebvander(nodes, TERMS - 1))
    coefficients = np.empty((len(middle), TERMS, len(gammas)))
    for column, gamma in enumerate(gammas):
        values = focal_factor(middle[:, None] + half[:, None] * nodes, gamma)
        coefficients[:, :, column] = values @ to_powers.T
    shift = 52 - digits
    first = int(np.float64(SMALLEST_U).view(np.int64)) >> shift
    return FocalTable(coefficients, np.stack([edges[1:], middle, 1 / half], axis=1), shift, first)


def _powers_from_chebyshev() -> NDArray[np.float64]:
    """Return the matrix that turns Chebyshev coefficients into those of powers."""
    columns = [chebyshev.cheb2poly(row) for row in np.eye(TERMS)]
    return np.array([np.pad(column, (0, TERMS - len(column))) for column in columns]).T


def _error(gammas: Sequence[float], table: FocalTable) -> float:
    """Return the largest relative error of f between the nodes, over u >= log 2."""
    t = np.cos(np.pi * np.arange(TERMS + 1) / TERMS)
    u = table.grid[:, 1:2] + t / table.grid[:, 2:3]
    powers = t[:, None] ** np.arange(TERMS)
    worst = 0.0
    for column, gamma in enumerate(gammas):
        exact = focal_factor(u, gamma)
        relative = np.abs(table.coefficients[:, :, column] @ powers.T - exact) / (1.0 + exact)
        worst = max(worst, float(np.max(relative[u >= np.log(2.0)])))
    return worst
