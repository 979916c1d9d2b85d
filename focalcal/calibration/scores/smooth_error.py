"""The smooth calibration error of Blasiok & Nakkiran (2023, "Smooth ECE")."""

import numpy as np
from numpy.typing import NDArray

CELLS = 2048
"""Cells of the grid on [0, 1] that residuals are spread over; a bandwidth is rarely below 5 of them."""
HALVINGS = 20


def smooth_calibration_error(confidence: NDArray[np.float64], correct: NDArray[np.bool_]) -> float:
    """Return smECE: the bandwidth at which the smoothed error equals the bandwidth.

    At bandwidth s the error is the integral over t in [0, 1] of |mean of K_s(t, confidence) (confidence -
    correct)|, where K_s is the Gaussian kernel reflected at 0 and 1. Cosines are eigenfunctions of K_s: one
    transform serves every bandwidth. The error falls with s, so bisection finds the only solution.
    """
    spectrum = _cosine_transform(confidence, (confidence - correct) / len(confidence))
    rates = 0.5 * (np.pi * np.arange(CELLS + 1)) ** 2
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        bandwidth = (low + high) / 2
        if _integral(spectrum * np.exp(-rates * bandwidth**2)) > bandwidth:
            low = bandwidth
        else:
            high = bandwidth
    return (low + high) / 2


def _cosine_transform(places: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of weight * cos(pi m place) for m = 0..CELLS, places (n,) in [0, 1] on the grid.

    A weight between two grid points is shared by both in proportion to how near they are.
    """
    position = np.clip(places, 0.0, 1.0) * CELLS
    below = np.minimum(position.astype(np.int64), CELLS - 1)
    share = position - below
    grid = np.bincount(below, weights * (1 - share), CELLS + 1)
    grid += np.bincount(below + 1, weights * share, CELLS + 1)
    return np.fft.rfft(grid, 2 * CELLS).real


def _integral(spectrum: NDArray[np.float64]) -> float:
    """Return the integral over [0, 1] of the absolute value of a density with this cosine spectrum."""
    density = np.abs(2 * CELLS * np.fft.irfft(spectrum)[: CELLS + 1])
    return float((density.sum() - (density[0] + density[-1]) / 2) / CELLS)
