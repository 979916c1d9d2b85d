"""Compiled equal-width and equal-mass ECE of one set of confidences, without sorting them all.

An ECE is a sum over bins of |sum of (confidence - correct)|, so all it needs is that sum up to each boundary
between bins. Samples are put into cells that are in the order of the confidences. Sums over whole cells leave
only the cell in which a boundary lies, whose samples are compared with the boundary or sorted.
"""

import numpy as np
from numba import njit

from focalcal.calibration.kernels.vector_math import EXACT, bits_of

CELLS = 1024
"""Enough for a cell to hold few of some thousand samples."""
STRICT = {**EXACT, "fastmath": False}
_HALF_BITS = 0x3FE0000000000000
_LEAST_DOUBT = 2.0**-54
"""1 - confidence is 0 or at least 2^-53."""


@njit(**EXACT)
def key_of(confidence):
    """Return an integer that never falls as the confidence c grows.

    It is linear in the exponent and leading digits of c, above 1/2 of 1 - c (which is exact there), because
    confidences pile up at 1.
    """
    if confidence <= 0.5:
        return bits_of(confidence)
    return 2 * _HALF_BITS - bits_of(max(1.0 - confidence, _LEAST_DOUBT))


@njit(**EXACT)
def find_keys(confidences, keys):
    """Fill `keys` and return the lowest and the highest of them."""
    low = high = key_of(confidences[0])
    for i in range(confidences.shape[0]):
        key = key_of(confidences[i])
        keys[i] = key
        low = min(low, key)
        high = max(high, key)
    return low, high


@njit(**EXACT)
def fill_cells(confidences, misclassified, keys, starts, gaps, order):
    """Return the lowest key and the shift that turns the difference of a key from it into a cell's number.

    Fills `order` with the samples, ascending by cell and then by number; starts[c] and gaps[c] with the
    number of samples, and the sum of their confidence - correct, in cells before c. `keys` is scratch.
    """
    low, high = find_keys(confidences, keys)
    shift = 0
    while (high - low) >> shift >= CELLS:
        shift += 1
    starts[:] = 0
    gaps[:] = 0.0
    for i in range(confidences.shape[0]):
        cell = (keys[i] - low) >> shift
        keys[i] = cell
        starts[cell + 2] += 1
        gaps[cell + 1] += (confidences[i] - 1.0) + misclassified[i]
    for cell in range(1, CELLS + 1):
        starts[cell + 1] += starts[cell]
        gaps[cell] += gaps[cell - 1]
    # So far starts[c + 1] is the start of cell c. Placing its samples moves it to the start of the next.
    for i in range(confidences.shape[0]):
        order[starts[keys[i] + 1]] = i
        starts[keys[i] + 1] += 1
    return low, shift


@njit(**EXACT)
def gap_up_to(edge, confidences, misclassified, low, shift, starts, gaps, order):
    """Return the sum of confidence - correct over samples with confidence <= edge."""
    key = key_of(edge)
    if key < low:
        return 0.0
    cell = (key - low) >> shift
    if cell >= CELLS:
        return gaps[CELLS]
    gap = gaps[cell]
    for i in order[starts[cell] : starts[cell + 1]]:
        if confidences[i] <= edge:
            gap += (confidences[i] - 1.0) + misclassified[i]
    return gap


@njit(**EXACT)
def width_ece(edges, confidences, misclassified, low, shift, starts, gaps, order):
    """Return the ECE of bins `(low, high]` with the given inner edges."""
    result = previous = 0.0
    for edge in edges:
        gap = gap_up_to(edge, confidences, misclassified, low, shift, starts, gaps, order)
        result += abs(gap - previous)
        previous = gap
    return (result + abs(gaps[CELLS] - previous)) / confidences.shape[0]


@njit(**EXACT)
def split_ece(ranks, confidences, misclassified, starts, gaps, order):
    """Return the equal-mass ECE whose second and later groups begin at the sorted positions `ranks`.

    Samples of equal confidence are in the order of their numbers, as in the definition.
    """
    result = previous = 0.0
    cell = -1
    ranked = order[:0]
    for rank in ranks:
        if rank >= starts[cell + 1]:
            while rank >= starts[cell + 1]:
                cell += 1
            members = order[starts[cell] : starts[cell + 1]]
            ranked = members[np.argsort(confidences[members], kind="mergesort")]
        gap = gaps[cell]
        for i in ranked[: rank - starts[cell]]:
            gap += (confidences[i] - 1.0) + misclassified[i]
        result += abs(gap - previous)
        previous = gap
    return (result + abs(gaps[CELLS] - previous)) / confidences.shape[0]


@njit(**EXACT)
def confidence_at(rank, confidences, starts, order):
    """Return the confidence at a position in ascending order."""
    cell = np.searchsorted(starts, rank, side="right") - 1
    return np.sort(confidences[order[starts[cell] : starts[cell + 1]]])[rank - starts[cell]]


@njit(**STRICT)
def authors_ece(positions, rounding, confidences, misclassified, low, shift, starts, gaps, order):
    """Return the equal-mass ECE with bins `(low, high]` whose edges np.interp would put at sorted positions.

    Samples up to and including the first edge, the smallest confidence, are not counted. Confidences above an
    edge by a fraction of at most `rounding` are tied with it.
    """
    count = confidences.shape[0]
    result = previous = 0.0
    for b in range(positions.shape[0]):
        rank = min(int(positions[b]), count - 1)
        edge = confidence_at(rank, confidences, starts, order)
        if rank + 1 < count:
            above = confidence_at(rank + 1, confidences, starts, order)
            edge = (above - edge) * (positions[b] - rank) + edge
        gap = gap_up_to(edge * (1.0 + rounding), confidences, misclassified, low, shift, starts, gaps, order)
        if b > 0:
            result += abs(gap - previous)
        previous = gap
    return result / count
