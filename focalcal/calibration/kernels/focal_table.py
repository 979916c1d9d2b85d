"""Piecewise polynomials of f(v) - 1, f(v) = h(v) / v, in u = -log v: what the compiled kernels know of Psi.

f(v) = (1-v)^-gamma / (1 + gamma B(v)), B(v) = -v log v / (1-v), is needed for all classes except the most
probable one, so for v <= 1/2, u >= log 2. Near v = 1/2, where f bends most, segments of u are short.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike, NDArray

from focalcal.calibration.catalogue import LARGEST_GAMMA, SMALLEST_GAMMA

TERMS = 12
"""Terms of a polynomial, a multiple of 4, which the kernels treat at once."""
TOLERANCE = 1e-12
"""Largest relative error of f that is accepted."""
COARSEST_EDGES = (0.69, 0.84, 1.02, 1.26, 1.56, 1.95, 2.48, 3.2, 4.2, 5.9, 8, 11, 15, 20, 29, 38, 64)
"""Edges of the longest segments on which TERMS terms reach the tolerance for gammas from -0.5 to 5."""


@dataclass(frozen=True)
class FocalTable:
    """Polynomials of several gammas on common segments."""

    coefficients: NDArray[np.float64]
    """(segments, TERMS, gammas), of powers of t in [-1, 1]."""
    edges: NDArray[np.float64]
    """(segments + 1,): where segments of u begin and end; t is -1 and 1 there."""


def focal_table(gammas: Sequence[float]) -> FocalTable:
    """Return the table with the fewest segments that is accurate for all gammas, each from -1 to 100."""
    check_gammas(gammas)
    edges = np.array(COARSEST_EDGES, dtype=np.float64)
    coefficients = _fitted(gammas, edges)
    while _error(gammas, edges, coefficients) > TOLERANCE:
        edges = np.sort(np.append(edges, (edges[1:] + edges[:-1]) / 2))
        coefficients = _fitted(gammas, edges)
    return FocalTable(coefficients, edges)


def check_gammas(gammas: ArrayLike) -> None:
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


def _fitted(gammas: Sequence[float], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return coefficients (segments, TERMS, gammas) of the interpolants at Chebyshev's nodes."""
    nodes = np.cos(np.pi * (np.arange(TERMS) + 0.5) / TERMS)
    to_powers = _powers_from_chebyshev() @ np.linalg.inv(chebyshev.chebvander(nodes, TERMS - 1))
    u = _points_of(edges, nodes)
    return np.stack([focal_factor(u, gamma) @ to_powers.T for gamma in gammas], axis=2)


def _points_of(edges: NDArray[np.float64], t: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return u at every t of every segment, (segments, t)."""
    return (edges[1:] + edges[:-1])[:, None] / 2 + np.diff(edges)[:, None] / 2 * t


@functools.cache
def _powers_from_chebyshev() -> NDArray[np.float64]:
    """Return the matrix that turns Chebyshev coefficients into those of powers."""
    columns = [chebyshev.cheb2poly(row) for row in np.eye(TERMS)]
    return np.array([np.pad(column, (0, TERMS - len(column))) for column in columns]).T


def _error(gammas: Sequence[float], edges: NDArray[np.float64], coefficients: NDArray[np.float64]) -> float:
    """Return the largest relative error of f between the nodes."""
    t = np.cos(np.pi * np.arange(TERMS + 1) / TERMS)
    u = _points_of(edges, t)
    powers = t[:, None] ** np.arange(TERMS)
    worst = 0.0
    for column, gamma in enumerate(gammas):
        exact = focal_factor(u, gamma)
        relative = np.abs(coefficients[:, :, column] @ powers.T - exact) / (1.0 + exact)
        worst = max(worst, float(np.max(relative)))
    return worst
