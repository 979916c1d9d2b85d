"""Compiled equal-width and equal-mass ECE of one set of confidences, without sorting them all.

Confidences are counted into some thousand cells, ordered like the confidences and finer than the bins of
equal width. Sums over whole cells give the equal-width ECE and, for equal mass, everything but the few cells
in which a group ends; only the samples of those are sorted, stably, so ties are in sample order as in the
definition.
"""

import numpy as np
from numba import njit

from focalcal.calibration.vector_math import EXACT, bits_of

TOP_SHIFT = 47
"""Cells of the last bin keep the exponent and the 5 leading binary digits of 1 - confidence."""
TOP_CELLS = (53 << (52 - TOP_SHIFT)) + 1
"""1 - confidence is between 2^-53 and 1, or 0."""
RUN = 24
"""So many numbers are sorted faster by insertion than by merging."""

STRICT = {**EXACT, "fastmath": False}


def cell_edges(samples, bins):
    """Return the edges of the cells below the last bin of equal width, then inf, and the cells a bin."""
    cells = max(1, min(samples // 4, 4096) // bins)
    edges = np.linspace(0.0, 1.0, bins + 1)
    lows = np.repeat(edges[: bins - 1], cells)
    widths = np.repeat(np.diff(edges[:bins]), cells)
    inner = lows + widths * np.tile(np.arange(cells) / cells, bins - 1)
    return np.concatenate([inner, edges[bins - 1 : bins], [np.inf]]), cells


@njit(**EXACT)
def cell_of(confidence, edges, last, cells_to_unit, top_bits):
    """Return the number of a confidence's cell, which never falls as the confidence grows.

    Below the last bin of equal width cells are intervals `(low, high]`. In that bin they shrink with 1 -
    confidence (whose subtraction is exact there or keeps the order), because confidences pile up at 1.
    """
    if confidence > edges[last]:
        return last + min((top_bits - bits_of(1.0 - confidence)) >> TOP_SHIFT, TOP_CELLS - 1)
    cell = min(int(confidence * cells_to_unit), last)
    cell -= confidence <= edges[cell]
    return cell + (confidence > edges[cell + 1])


@njit(**EXACT)
def sort_stably(members, scratch, confidences, begin, end):
    """Sort members[begin:end], ascending sample numbers, by confidence; ties stay in the order of samples."""
    for first in range(begin, end, RUN):
        for i in range(first + 1, min(first + RUN, end)):
            sample = members[i]
            j = i
            while j > first and confidences[members[j - 1]] > confidences[sample]:
                members[j] = members[j - 1]
                j -= 1
            members[j] = sample
    width = RUN
    while width < end - begin:
        for first in range(begin, end - width, 2 * width):
            merge(members, scratch, confidences, first, first + width, min(first + 2 * width, end))
        width *= 2


@njit(**EXACT)
def merge(members, scratch, confidences, first, middle, end):
    """Merge the sorted members[first:middle] and members[middle:end]; of equals, the earlier comes first."""
    scratch[first:middle] = members[first:middle]
    left, right = first, middle
    for i in range(first, end):
        if left == middle:
            return
        if right < end and confidences[members[right]] < confidences[scratch[left]]:
            members[i] = members[right]
            right += 1
        else:
            members[i] = scratch[left]
            left += 1


@njit(**EXACT)
def open_cells(confidences, wrong, ranks, grid, cells, counts, sums, opened, before, members, scratch):
    """Return the equal-width ECE and the number of opened cells, those with a sorted position in `ranks`.

    `grid` is (edges, cells a bin). Fills, for the k-th opened cell, opened[k] with the sorted position of its
    first sample, the index of its first sample in `members` and the index after its last; before[k] with the
    sum of confidence - correct over all samples of lower cells, and the entry after the last with the sum of
    all.
    """
    edges, cells_a_bin = grid
    count, last = confidences.shape[0], edges.shape[0] - 2
    cells_to_unit = cells_a_bin / edges[cells_a_bin] if last > 0 else 1.0
    top_bits = bits_of(1.0 - edges[last])
    for i in range(count):
        cells[i] = cell_of(confidences[i], edges, last, cells_to_unit, top_bits)
    counts[:] = 0
    sums[:] = 0.0
    for i in range(count):
        counts[cells[i]] += 1
        sums[cells[i]] += (confidences[i] - 1.0) + wrong[i]
    number = used = position = rank = 0
    gap = bin_start = width_ece = 0.0
    bin_end = cells_a_bin if last > 0 else counts.shape[0]
    next_rank = ranks[0] if ranks.shape[0] > 0 else count
    for cell in range(counts.shape[0]):
        if cell == bin_end:
            width_ece += abs(gap - bin_start)
            bin_start = gap
            bin_end = bin_end + cells_a_bin if bin_end < last else counts.shape[0]
        end = position + counts[cell]
        counts[cell] = -1
        if next_rank < end:
            opened[number, 0] = position
            opened[number, 1] = opened[number, 2] = used
            before[number] = gap
            counts[cell] = number
            number += 1
            used += end - position
            while next_rank < end:
                rank += 1
                next_rank = ranks[rank] if rank < ranks.shape[0] else count
        position = end
        gap += sums[cell]
    before[number] = gap
    for i in range(count):
        k = counts[cells[i]]
        if k >= 0:
            members[opened[k, 2]] = i
            opened[k, 2] += 1
    for k in range(number):
        sort_stably(members, scratch, confidences, opened[k, 1], opened[k, 2])
    return (width_ece + abs(gap - bin_start)) / count, number


@njit(**EXACT)
def split_ece(confidences, wrong, ranks, number, opened, before, members):
    """Return the equal-mass ECE whose second and later groups begin at the sorted positions `ranks`."""
    result = previous = 0.0
    k, i = 0, 0
    gap = before[0]
    for rank in ranks:
        while k + 1 < number and opened[k + 1, 0] <= rank:
            k += 1
            i = opened[k, 1]
            gap = before[k]
        stop = opened[k, 1] + rank - opened[k, 0]
        while i < stop:
            gap += (confidences[members[i]] - 1.0) + wrong[members[i]]
            i += 1
        result += abs(gap - previous)
        previous = gap
    return (result + abs(before[number] - previous)) / confidences.shape[0]


@njit(**STRICT)
def authors_ece(confidences, wrong, positions, number, opened, before, members):
    """Return the equal-mass ECE with bins `(low, high]` whose edges np.interp would put at sorted positions.

    Samples up to and including the first edge, the smallest confidence, are not counted.
    """
    count = confidences.shape[0]
    result = previous = 0.0
    k, i = 0, 0
    gap = before[0]
    for b in range(positions.shape[0]):
        rank = min(int(positions[b]), count - 1)
        while k + 1 < number and opened[k + 1, 0] <= rank:
            k += 1
            i = opened[k, 1]
            gap = before[k]
        edge = confidences[members[opened[k, 1] + rank - opened[k, 0]]]
        if rank + 1 < count:
            following = k + 1 if k + 1 < number and opened[k + 1, 0] <= rank + 1 else k
            above = confidences[members[opened[following, 1] + rank + 1 - opened[following, 0]]]
            edge = (above - edge) * (positions[b] - rank) + edge
            if following != k:
                k = following
                i = opened[k, 1]
                gap = before[k]
        while i < opened[k, 2] and confidences[members[i]] <= edge:
            gap += (confidences[members[i]] - 1.0) + wrong[members[i]]
            i += 1
        if b > 0:
            result += abs(gap - previous)
        previous = gap
    return result / count
