"""Compiled equal-width and equal-mass ECE of one set of confidences, without sorting them all.

Confidences are counted into some thousand cells that are in the order of the confidences. An ECE is a sum
over bins of |sum of (confidence - correct)|, and sums over whole cells give all but the cells in which a bin
ends. Only those are opened: their samples are sorted, stably, so that ties are in sample order as in the
definitions.
"""

import numpy as np
from numba import njit

from focalcal.calibration.kernels.vector_math import EXACT, bits_of

SHIFT = 45
"""A cell keeps the exponent and the 7 leading binary digits of the confidence c, above 1/2 of 1 - c."""
LOWEST = (1023 - 30) << (52 - SHIFT)
"""Confidences below 2^-30 share a cell."""
MIDDLE = (1023 - 1) << (52 - SHIFT)
HIGHEST = (1023 - 54) << (52 - SHIFT)
"""1 - c is 0 or at least 2^-53."""
CELLS = 2 * MIDDLE - LOWEST - HIGHEST + 1
RUN = 24
"""So many numbers are sorted faster by insertion than by merging."""

STRICT = {**EXACT, "fastmath": False}


@njit(**EXACT)
def cell_of(confidence):
    """Return the number of a confidence's cell, which never falls as the confidence grows.

    Confidences pile up at 1, and cells with them; 1 - c is exact where it is used. Compiled to vector code.
    """
    digits = bits_of(min(confidence, 1.0 - confidence)) >> SHIFT
    if confidence <= 0.5:
        return max(digits, LOWEST) - LOWEST
    return 2 * MIDDLE - LOWEST - max(digits, HIGHEST)


@njit(**EXACT)
def find_cells(confidences, cells):
    """Fill `cells` and return the lowest and the highest of them."""
    low, high = np.int32(CELLS), np.int32(0)
    for i in range(confidences.shape[0]):
        cell = np.int32(cell_of(confidences[i]))
        cells[i] = cell
        low = min(low, cell)
        high = max(high, cell)
    return low, high


@njit(**EXACT)
def open_cells(confidences, wrong, ranks, edge_cells, cells, counts, sums, opened, before, members, scratch):
    """Return the lowest cell and the number of cells opened: `edge_cells` and those of positions `ranks`.

    Both are ascending. Fills opened[k] with the k-th opened cell's number, the sorted position of its first
    sample, the index of its first sample in `members` and the index after its last; before[k] with the sum of
    confidence - correct over all samples of lower cells, and the entry after the last with that of all.
    """
    count = confidences.shape[0]
    low, high = find_cells(confidences, cells)
    counts[low : high + 1] = 0
    sums[low : high + 1] = 0.0
    for i in range(count):
        counts[cells[i]] += 1
        sums[cells[i]] += (confidences[i] - 1.0) + wrong[i]
    number = used = position = rank = edge = 0
    gap = 0.0
    next_rank = ranks[0] if ranks.shape[0] > 0 else count
    while edge < edge_cells.shape[0] and edge_cells[edge] < low:
        edge += 1
    next_edge = edge_cells[edge] if edge < edge_cells.shape[0] else CELLS
    for cell in range(low, high + 1):
        end = position + counts[cell]
        counts[cell] = -1
        if next_rank < end or cell == next_edge:
            opened[number, 0] = cell
            opened[number, 1] = position
            opened[number, 2] = opened[number, 3] = used
            before[number] = gap
            counts[cell] = number
            number += 1
            used += end - position
            while next_rank < end:
                rank += 1
                next_rank = ranks[rank] if rank < ranks.shape[0] else count
            while next_edge == cell:
                edge += 1
                next_edge = edge_cells[edge] if edge < edge_cells.shape[0] else CELLS
        position = end
        gap += sums[cell]
    before[number] = gap
    found = 0
    for i in range(count):  # without a branch, which would be a guess for each sample
        scratch[found] = i
        found += counts[cells[i]] >= 0
    for j in range(found):
        k = counts[cells[scratch[j]]]
        members[opened[k, 3]] = scratch[j]
        opened[k, 3] += 1
    for k in range(number):
        sort_stably(members, scratch, confidences, opened[k, 2], opened[k, 3])
    return low, number


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
            middle = first + width
            if confidences[members[middle - 1]] > confidences[members[middle]]:
                merge(members, scratch, confidences, first, middle, min(middle + width, end))
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
def width_ece(confidences, wrong, edges, edge_cells, low, number, opened, before, members):
    """Return the ECE of bins `(low, high]` with the given inner edges, whose cells have been opened."""
    result = previous = 0.0
    k = 0
    for b in range(edges.shape[0]):
        while k + 1 < number and opened[k, 0] < edge_cells[b]:
            k += 1
        if number > 0 and opened[k, 0] == edge_cells[b]:
            gap = before[k]
            i = opened[k, 2]
            while i < opened[k, 3] and confidences[members[i]] <= edges[b]:
                gap += (confidences[members[i]] - 1.0) + wrong[members[i]]
                i += 1
        else:
            gap = 0.0 if edge_cells[b] < low else before[number]
        result += abs(gap - previous)
        previous = gap
    return (result + abs(before[number] - previous)) / confidences.shape[0]


@njit(**EXACT)
def split_ece(confidences, wrong, starts, number, opened, before, members):
    """Return the equal-mass ECE whose second and later groups begin at the sorted positions `starts`."""
    result = previous = gap = 0.0
    k, i = -1, 0
    for start in starts:
        while k < 0 or (k + 1 < number and opened[k + 1, 1] <= start):
            k += 1
            i = opened[k, 2]
            gap = before[k]
        stop = opened[k, 2] + start - opened[k, 1]
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
    result = previous = gap = 0.0
    k, i = -1, 0
    for b in range(positions.shape[0]):
        rank = min(int(positions[b]), count - 1)
        while k < 0 or (k + 1 < number and opened[k + 1, 1] <= rank):
            k += 1
            i = opened[k, 2]
            gap = before[k]
        edge = confidences[members[opened[k, 2] + rank - opened[k, 1]]]
        if rank + 1 < count:
            following = k
            while opened[following, 3] - opened[following, 2] <= rank + 1 - opened[following, 1]:
                following += 1
            above = confidences[members[opened[following, 2] + rank + 1 - opened[following, 1]]]
            edge = (above - edge) * (positions[b] - rank) + edge
            if following != k:
                k = following
                i = opened[k, 2]
                gap = before[k]
        while i < opened[k, 3] and confidences[members[i]] <= edge:
            gap += (confidences[members[i]] - 1.0) + wrong[members[i]]
            i += 1
        if b > 0:
            result += abs(gap - previous)
        previous = gap
    return result / count
