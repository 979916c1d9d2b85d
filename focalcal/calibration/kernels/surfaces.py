"""Compiled evaluation of NLL and both ECEs of Psi^gamma(softmax(s / T)), for many gammas in one pass.

Notation, for one sample whose logits are sorted, s_0 >= s_1 >= ...: gap = s_0 - s_1 and, for the others (j >
0), drops_j = s_1 - s_j, w_j = exp(-drops_j / T), W = sum w_j, R = exp(-gap / T) W. So v_0 = 1 / (1 + R) and
u_j = -log v_j = (gap + drops_j) / T + log1p(R). With f(v) = h(v) / v (h as in `focalcal.theory.psi`) and S =
sum w_j f(v_j), the odds against the top class after Psi are

    Q = sum_{j>=1} h_j / h_0 = S (1 + gamma log1p(R) / R) exp(-gap / T + gamma log(1 - v_0)),

its probability is 1 / (1 + Q), its NLL log1p(Q); that of a label y which is not the top class is
(s_0 - s_y) / T - gamma log(1 - v_0) - log(f(v_y) (1 + gamma log1p(R) / R)) + log1p(Q). Nothing here is a
difference of nearly equal numbers or overflows, and the sums leave out only what float64 would round away.

Psi keeps the order of classes, so whether a sample is classified correctly depends on neither gamma nor T. f
is the same function of u for all samples: on each segment of u it is a polynomial (`focal_table`), and of the
classes with u in that segment only the moments sum w_j t_j^m matter, which serve all gammas.
"""

import numpy as np
from numba import njit

from focalcal.calibration.kernels.binned import CELLS, authors_ece, cell_of, open_cells, split_ece, width_ece
from focalcal.calibration.kernels.vector_math import (
    EXACT,
    LANES,
    TERMS,
    add_polynomials,
    add_terms,
    bits_of,
    exp,
    exp_far,
    log,
    segment_moments,
    total,
)

BLOCK = 64
"""Samples are taken in blocks whose intermediate results stay in the processor's first-level cache."""
QUARTER = BLOCK // 4
FEW_CLASSES = 32
"""Up to so many, leaving out negligible classes costs more than it saves."""
NEGLIGIBLE = 46.0
"""exp(-46) = 1e-20: a class that much less probable than the second one does not change W."""


@njit(**EXACT)
def weigh(drops, beta, weights):
    """Fill `weights` with exp(-drops / T)."""
    for j in range(drops.shape[0]):
        weights[j] = exp(-min(drops[j] * beta, 700.0))


@njit(**EXACT)
def sum_block(drops, classes, beta, active, weights, sums):
    """Fill `weights` and their `sums` (samples,); active[i], the classes that count, only grows with T."""
    if classes <= FEW_CLASSES:
        weigh(drops, beta, weights)
        for i in range(active.shape[0]):
            sums[i] = total(weights[i * classes : (i + 1) * classes])
        return
    for i in range(active.shape[0]):
        row = i * classes
        count = active[i]
        while count < classes and drops[row + count] * beta <= NEGLIGIBLE:
            count += 1
        active[i] = count
        weigh(drops[row : row + count], beta, weights[row : row + count])
        sums[i] = total(weights[row : row + count])


@njit(**EXACT)
def describe_tops(gaps, beta, sums, tops):
    """Fill the rows of `tops`: 0 -gap / T; 1 log1p(R); 2 log(1 - v_0); 3 D = 1 - log1p(R) / R; 4 D / R."""
    for i in range(gaps.shape[0]):
        exponent = -gaps[i] * beta
        rest = exp_far(exponent) * sums[i]
        one = 1.0 + rest
        log_one = log(one) + (rest - (one - 1.0)) / one
        # log1p(R) = R - R^2/2 + ...: the quotient loses digits where R is small, the series where it is not.
        series = 1 / 5 - rest * (1 / 6 - rest * (1 / 7 - rest / 8))
        series = 1 / 2 - rest * (1 / 3 - rest * (1 / 4 - rest * series))
        ratio = series if rest < 2e-3 else (1.0 - log_one / rest) / rest
        tops[0, i] = exponent
        tops[1, i] = log_one
        tops[2, i] = exponent + log(sums[i]) - log_one
        tops[3, i] = ratio * rest
        tops[4, i] = ratio


@njit(**EXACT)
def focal_sums(drops, weights, classes, beta, tops, table, segments, moments, sums):
    """Fill sums[i] (gammas) with sum_j w_j (f(v_j) - 1) of each sample; its drops are in ascending order."""
    grid, shift, first, farthest = segments
    temperature = 1.0 / beta
    sums[:, :] = 0.0
    for i in range(drops.shape[0] // classes):
        lowest = tops[1, i] - tops[0, i]
        # w_j (f(v_j) - 1) falls like exp(-drops_j / T - u_j): behind this drop the rest cannot matter.
        last_drop = 0.5 * (farthest - lowest) * temperature
        begin, stop = i * classes, (i + 1) * classes
        if classes <= FEW_CLASSES:
            while stop > begin and drops[stop - 1] > last_drop:
                stop -= 1
            add_terms(drops, weights, begin, stop, beta, lowest, table, grid, shift, first, sums, i)
            continue
        while begin < stop and drops[begin] <= last_drop:
            segment = (bits_of(drops[begin] * beta + lowest) >> shift) - first
            limit = (grid[segment, 0] - lowest) * temperature
            end = begin + 1
            while end < stop and drops[end] < limit:
                end += 1
            middle, scale = grid[segment, 1], grid[segment, 2]
            segment_moments(drops, weights, begin, end, beta * scale, (lowest - middle) * scale, moments)
            add_polynomials(table, segment, moments, sums, i)
            begin = end


@njit(**EXACT)
def label_terms(label_gaps, wrong, beta, tops, table, segments, terms):
    """Fill terms[i] (gammas) with f(v_y) - 1 of the label y of each misclassified sample, else with 0."""
    grid, shift, first, farthest = segments
    terms[:, :] = 0.0
    for i in range(wrong.shape[0]):
        if wrong[i] != 0.0 and label_gaps[i] * beta + tops[1, i] < farthest:
            add_terms(label_gaps, wrong, i, i + 1, beta, tops[1, i], table, grid, shift, first, terms, i)


@njit(**EXACT)
def transpose(values, count, out):
    """Fill out[:, :count] with the transpose of values[:count]."""
    for g in range(values.shape[1]):
        for i in range(count):
            out[g, i] = values[i, g]


@njit(**EXACT)
def finish(gamma, beta, tops, sums, extra, terms, wrong, label_gaps, confidences, factors, losses):
    """Fill the confidences of a block at one gamma, and `losses` with numbers whose sum is the block's NLL.

    A sample's NLL is the logarithm of a quotient plus the rest; the quotients of four samples share a
    logarithm.
    """
    # At gamma = -1, 1 + gamma log1p(R) / R = D underflows with R. D / R does not; log R goes to the rest.
    least = 1.0 if gamma == -1.0 else 0.0
    for i in range(wrong.shape[0]):
        denominator = (1.0 + gamma) - gamma * tops[3, i]
        odds = (sums[i] + extra[i]) * denominator * exp_far(tops[0, i] + gamma * tops[2, i])
        one = 1.0 + odds
        inverse = 1.0 / one
        confidences[i] = 1.0 - odds * inverse if odds < 1.0 else inverse
        denominator = tops[4, i] if least != 0.0 else denominator
        factors[0, i] = one
        factors[1, i] = (1.0 + terms[i]) * denominator if wrong[i] != 0.0 else 1.0
        rest = label_gaps[i] * beta - gamma * tops[2, i] - least * (tops[1, i] + tops[2, i])
        losses[i] = (odds - (one - 1.0)) * inverse + wrong[i] * rest
    for i in range(wrong.shape[0], BLOCK):
        factors[0, i] = factors[1, i] = 1.0
        losses[i] = 0.0
    for i in range(QUARTER):
        upper = factors[0, i] * factors[0, i + QUARTER]
        upper *= factors[0, i + 2 * QUARTER] * factors[0, i + 3 * QUARTER]
        lower = factors[1, i] * factors[1, i + QUARTER]
        lower *= factors[1, i + 2 * QUARTER] * factors[1, i + 3 * QUARTER]
        losses[BLOCK + i] = log(upper / lower)


def surfaces(samples, points, tables, segments, binning, out):
    """Fill out[:, p, g] with NLL, equal-width ECE and equal-mass ECE (only NLL where `out` has one row).

    samples: drops (n * (k-1),), gaps (n,), label gaps s_0 - s_y (n,), wrong (n,) as 0.0 or 1.0.
    points: the numbers p to evaluate, ascending in temperature; temperatures (p,); gammas (1 or p, g).
    tables, segments: from `focal_table`, one table or one a point.
    binning: inner edges of the bins of equal width; the sorted positions that equal mass looks at; the
    starts of its groups ("split"); the positions of its edges ("authors", else empty).
    """
    drops, gaps, label_gaps, wrong = samples
    numbers, temperatures, gammas = points
    edges, ranks, starts, positions = binning
    count = gaps.shape[0]
    classes = drops.shape[0] // count
    width, lanes = gammas.shape[1], tables.shape[2] * LANES
    active = np.zeros(count, np.int64)
    weights, moments = np.empty(BLOCK * classes), np.empty(TERMS)
    sums, tops = np.empty(BLOCK), np.empty((5, BLOCK))
    extra, extra_by_gamma = np.empty((BLOCK, lanes)), np.empty((lanes, BLOCK))
    terms, terms_by_gamma = np.empty((BLOCK, lanes)), np.empty((lanes, BLOCK))
    factors, losses = np.empty((2, BLOCK)), np.empty(BLOCK + QUARTER)
    confidences = np.empty((width, count))
    cells, members, scratch = np.empty(count, np.uint32), np.empty(count, np.int64), np.empty(count, np.int64)
    counts, cell_sums = np.empty(CELLS, np.int64), np.empty(CELLS)
    edge_cells = np.empty(edges.shape[0], np.int64)
    for b in range(edges.shape[0]):
        edge_cells[b] = cell_of(edges[b])
    most = ranks.shape[0] + edges.shape[0]
    opened, before = np.empty((most + 1, 4), np.int64), np.empty(most + 1)
    for p in numbers:
        own = p if tables.shape[0] > 1 else 0
        table = tables[own]
        beta = 1.0 / temperatures[p]
        out[0, p, :] = 0.0
        for start in range(0, count, BLOCK):
            size = min(BLOCK, count - start)
            end = start + size
            block = drops[start * classes : end * classes]
            labels, faults = label_gaps[start:end], wrong[start:end]
            sum_block(block, classes, beta, active[start:end], weights, sums)
            describe_tops(gaps[start:end], beta, sums, tops)
            focal_sums(block, weights, classes, beta, tops, table, segments, moments, extra)
            label_terms(labels, faults, beta, tops, table, segments, terms)
            transpose(extra, size, extra_by_gamma)
            transpose(terms, size, terms_by_gamma)
            for g in range(width):
                finish(
                    gammas[own, g],
                    beta,
                    tops,
                    sums,
                    extra_by_gamma[g],
                    terms_by_gamma[g],
                    faults,
                    labels,
                    confidences[g, start:end],
                    factors,
                    losses,
                )
                out[0, p, g] += total(losses) / count
        if out.shape[0] == 1:
            continue
        for g in range(width):
            conf = confidences[g]
            low, number = open_cells(
                conf, wrong, ranks, edge_cells, cells, counts, cell_sums, opened, before, members, scratch
            )
            out[1, p, g] = width_ece(conf, wrong, edges, edge_cells, low, number, opened, before, members)
            if positions.shape[0] > 0:
                out[2, p, g] = authors_ece(conf, wrong, positions, number, opened, before, members)
            else:
                out[2, p, g] = split_ece(conf, wrong, starts, number, opened, before, members)


def focal_losses(samples, points, gamma, out):
    """Fill out[p] with the mean focal loss of softmax(s / T), C21 Eq. (5)."""
    drops, gaps, label_gaps, wrong = samples
    numbers, temperatures = points
    count = gaps.shape[0]
    classes = drops.shape[0] // count
    active = np.zeros(count, np.int64)
    weights, sums, tops, losses = (
        np.empty(BLOCK * classes),
        np.empty(BLOCK),
        np.empty((5, BLOCK)),
        np.zeros(BLOCK),
    )
    for p in numbers:
        beta = 1.0 / temperatures[p]
        out[p] = 0.0
        for start in range(0, count, BLOCK):
            end = min(start + BLOCK, count)
            sum_block(drops[start * classes : end * classes], classes, beta, active[start:end], weights, sums)
            describe_tops(gaps[start:end], beta, sums, tops)
            for i in range(end - start):
                minus_log = wrong[start + i] * label_gaps[start + i] * beta + tops[1, i]
                log_other = log(1.0 - exp_far(-minus_log)) if wrong[start + i] != 0.0 else tops[2, i]
                losses[i] = exp_far(gamma * log_other) * minus_log
            out[p] += total(losses[: end - start]) / count
