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

from focalcal.calibration.kernels.binned import CELLS, authors_ece, fill_cells, split_ece, width_ece
from focalcal.calibration.kernels.focal_table import TERMS
from focalcal.calibration.kernels.vector_math import ANY_ORDER, EXACT, exp, exp_far, log, total

GUESSES = 8
"""Segments are guessed from u in steps of 1 / GUESSES."""
BLOCK = 64
"""Samples are taken in blocks whose weights stay in the processor's cache."""
DESCRIPTION = 6
"""Numbers that describe a sample at a temperature."""


@njit(**EXACT)
def describe_tops(drops, gaps, beta, weights, tops, start, end):
    """Fill `weights` (BLOCK, k-1) and tops[:, start:end] for these samples at T = 1 / beta.

    Weights are w. Rows of `tops` are W, -gap / T, log1p(R), log(1 - v_0), D = 1 - log1p(R) / R, D / R.
    """
    # One long loop: those over a few classes are too short to be vectorised.
    flat_drops, flat_weights = drops[start:end].reshape(-1), weights.reshape(-1)
    for j in range(flat_drops.shape[0]):
        flat_weights[j] = exp(-min(flat_drops[j] * beta, 700.0))
    for i in range(start, end):
        tops[0, i] = total(weights[i - start])
    sums, exponents, log_ones = tops[0, start:end], tops[1, start:end], tops[2, start:end]
    log_rests, defects, ratios = tops[3, start:end], tops[4, start:end], tops[5, start:end]
    own_gaps = gaps[start:end]
    for i in range(sums.shape[0]):
        exponent = -own_gaps[i] * beta
        rest = exp_far(exponent) * sums[i]
        one = 1.0 + rest
        log_one = log(one) + (rest - (one - 1.0)) / one
        # log1p(R) = R - R^2/2 + ...: the quotient loses digits where R is small, the series where it is not.
        series = 1 / 5 - rest * (1 / 6 - rest * (1 / 7 - rest / 8))
        series = 1 / 2 - rest * (1 / 3 - rest * (1 / 4 - rest * series))
        ratio = series if rest < 2e-3 else (1.0 - log_one / rest) / rest
        exponents[i] = exponent
        log_ones[i] = log_one
        log_rests[i] = exponent + log(sums[i]) - log_one
        defects[i] = ratio * rest
        ratios[i] = ratio


@njit(**EXACT)
def focal_sums(drops, weights, last_drop, beta, offset, table, edges, sums):
    """Fill `sums` (gammas) with sum_j w_j (f(v_j) - 1) over ascending drops up to the last one that matters.

    u_j = drops_j / T + offset. Overwrites `weights`.
    """
    temperature = 1.0 / beta
    sums[:] = 0.0
    begin = 0
    for segment in range(table.shape[0]):
        if begin == drops.shape[0] or drops[begin] > last_drop:
            return
        limit = (edges[segment + 1] - offset) * temperature
        if drops[begin] < limit:
            end = count_below(drops, limit)
            scale = 2.0 / (edges[segment + 1] - edges[segment])
            slope, intercept = beta * scale, (offset - edges[segment]) * scale - 1.0
            add_polynomials(drops[begin:end], weights[begin:end], slope, intercept, table[segment], sums)
            begin = end


@njit(**EXACT)
def polynomial_at(u, edges, guesses, table):
    """Return f(v) - 1 at u = -log v for the first gamma of a table."""
    segment = guesses[int(u * GUESSES)]
    while u >= edges[segment + 1]:
        segment += 1
    t = 2.0 * (u - edges[segment]) / (edges[segment + 1] - edges[segment]) - 1.0
    value = table[segment, TERMS - 1, 0]
    for m in range(TERMS - 2, -1, -1):
        value = value * t + table[segment, m, 0]
    return value


@njit(**EXACT)
def one_gamma_sum(drops, weights, last_drop, beta, offset, table, edges, guesses):
    """Return what `focal_sums` fills, for one gamma: moments pay only where several gammas share them."""
    result = 0.0
    for j in range(drops.shape[0]):
        if drops[j] > last_drop:
            break
        result += weights[j] * polynomial_at(drops[j] * beta + offset, edges, guesses, table)
    return result


@njit(**EXACT)
def count_below(values, limit):
    """Return how many values are below the limit."""
    count = 0
    for j in range(values.shape[0]):
        count += values[j] < limit
    return count


@njit(**ANY_ORDER)
def add_polynomials(points, weights, slope, intercept, coefficients, sums):
    """Add to sums[g] the weighted sum over points x of sum_m coefficients[m, g] (slope x + intercept)^m.

    Takes four powers at a time, and leaves the weights multiplied by the last.
    """
    for m in range(0, TERMS, 4):
        moment_0 = moment_1 = moment_2 = moment_3 = 0.0
        for j in range(points.shape[0]):
            t = points[j] * slope + intercept
            power = weights[j]
            moment_0 += power
            power *= t
            moment_1 += power
            power *= t
            moment_2 += power
            power *= t
            moment_3 += power
            weights[j] = power * t
        row_0, row_1 = coefficients[m], coefficients[m + 1]
        row_2, row_3 = coefficients[m + 2], coefficients[m + 3]
        for g in range(sums.shape[0]):
            low = moment_0 * row_0[g] + moment_1 * row_1[g]
            sums[g] += low + (moment_2 * row_2[g] + moment_3 * row_3[g])


@njit(**EXACT)
def finish(gamma, beta, tops, sums, terms, misclassified, label_gaps, confidences, losses):
    """Fill confidences and NLLs of all samples at one gamma."""
    # At gamma = -1, 1 + gamma log1p(R) / R = D underflows with R. D / R does not; log R is added instead.
    least = 1.0 if gamma == -1.0 else 0.0
    for i in range(confidences.shape[0]):
        denominator = (1.0 + gamma) - gamma * tops[4, i]
        odds = (tops[0, i] + sums[i]) * denominator * exp_far(tops[1, i] + gamma * tops[3, i])
        one = 1.0 + odds
        inverse = 1.0 / one
        confidences[i] = 1.0 - odds * inverse if odds < 1.0 else inverse
        denominator = tops[5, i] if least != 0.0 else denominator
        factor = (1.0 + terms[i]) * denominator if misclassified[i] != 0.0 else 1.0
        rest = label_gaps[i] * beta - gamma * tops[3, i] - least * (tops[2, i] + tops[3, i])
        losses[i] = log(one / factor) + (odds - (one - 1.0)) * inverse + misclassified[i] * rest


def fill_surfaces(samples, points, tables, segments, binning, out):
    """Fill out[:, p, g] with NLL, equal-width ECE and equal-mass ECE (only NLL where `out` has one row).

    samples: drops (n, k-1), gaps (n,), label gaps s_0 - s_y (n,), misclassified (n,) as 0.0 or 1.0.
    points: the numbers p to evaluate; temperatures (p,); gammas (1 or p, g).
    tables, segments: from `focal_table`, one table for all points or one per point.
    binning: inner edges of the bins of equal width; the sorted positions at which the groups of equal mass
    begin ("split"); the positions of their edges ("authors", else empty), and the relative difference up to
    which confidences are tied with an edge.
    """
    drops, gaps, label_gaps, misclassified = samples
    numbers, temperatures, gammas = points
    edges, farthest = segments
    inner_edges, ranks, positions, rounding = binning
    count, classes = drops.shape
    width = gammas.shape[1]
    weights, label_weight = np.empty((BLOCK, classes)), np.empty(1)
    guesses = np.searchsorted(edges, np.arange(int(edges[-1] * GUESSES) + 1) / GUESSES, "right") - 1
    tops = np.empty((DESCRIPTION, count))
    sums, terms = np.empty((count, width)), np.empty((count, width))
    extra, term = np.empty(count), np.empty(count)
    confidences, losses = np.empty(count), np.empty(count)
    keys, order = np.empty(count, np.int64), np.empty(count, np.int64)
    starts, cell_gaps = np.empty(CELLS + 2, np.int64), np.empty(CELLS + 1)
    for p in numbers:
        own = p if tables.shape[0] > 1 else 0
        table = tables[own]
        beta = 1.0 / temperatures[p]
        for start in range(0, count, BLOCK):
            end = min(start + BLOCK, count)
            describe_tops(drops, gaps, beta, weights, tops, start, end)
            for i in range(start, end):
                # w_j (f(v_j) - 1) falls like exp(-drops_j / T - u_j): behind last_drop it is negligible.
                lowest = tops[2, i] - tops[1, i]
                last_drop = 0.5 * (farthest - lowest) / beta
                if width == 1:
                    sums[i, 0] = one_gamma_sum(
                        drops[i], weights[i - start], last_drop, beta, lowest, table, edges, guesses
                    )
                    far = label_gaps[i] * beta + tops[2, i]
                    near = misclassified[i] != 0.0 and far < farthest
                    terms[i, 0] = polynomial_at(far, edges, guesses, table) if near else 0.0
                    continue
                focal_sums(drops[i], weights[i - start], last_drop, beta, lowest, table, edges, sums[i])
                if misclassified[i] != 0.0:
                    label_weight[0] = 1.0
                    last_gap = (farthest - tops[2, i]) / beta
                    label = label_gaps[i : i + 1]
                    focal_sums(label, label_weight, last_gap, beta, tops[2, i], table, edges, terms[i])
        for g in range(width):
            gamma = gammas[own, g]
            extra[:] = sums[:, g]
            term[:] = terms[:, g]
            finish(gamma, beta, tops, extra, term, misclassified, label_gaps, confidences, losses)
            out[0, p, g] = total(losses) / count
            if out.shape[0] == 1:
                continue
            low, shift = fill_cells(confidences, misclassified, keys, starts, cell_gaps, order)
            cells = (confidences, misclassified, low, shift, starts, cell_gaps, order)
            out[1, p, g] = width_ece(inner_edges, *cells)
            if positions.shape[0] > 0:
                out[2, p, g] = authors_ece(positions, rounding, *cells)
            else:
                out[2, p, g] = split_ece(ranks, confidences, misclassified, starts, cell_gaps, order)


def fill_focal_losses(samples, points, gamma, out):
    """Fill out[p] with the mean focal loss of softmax(s / T), C21 Eq. (5)."""
    drops, gaps, label_gaps, misclassified = samples
    numbers, temperatures = points
    count, classes = drops.shape
    weights, tops, losses = np.empty((BLOCK, classes)), np.empty((DESCRIPTION, count)), np.empty(count)
    for p in numbers:
        beta = 1.0 / temperatures[p]
        for start in range(0, count, BLOCK):
            describe_tops(drops, gaps, beta, weights, tops, start, min(start + BLOCK, count))
        for i in range(count):
            minus_log = misclassified[i] * label_gaps[i] * beta + tops[2, i]
            log_other = log(1.0 - exp_far(-minus_log)) if misclassified[i] != 0.0 else tops[3, i]
            losses[i] = exp_far(gamma * log_other) * minus_log
        out[p] = total(losses) / count
