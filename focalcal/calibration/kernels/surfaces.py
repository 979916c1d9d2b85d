"""Compiled evaluation of NLL and both ECEs of Psi^gamma(softmax(s / T)), for many gammas in one pass.

Notation, for one sample whose logits are sorted, s_0 >= s_1 >= ...: gap = s_0 - s_1 and, for the others (j >
0), drops_j = s_1 - s_j, w_j = exp(-drops_j / T), W = sum w_j, R = exp(-gap / T) W. So v_0 = 1 / (1 + R) and
u_j = -log v_j = (gap + drops_j) / T + log1p(R). With f(v) = h(v) / v (h as in `focalcal.theory.psi`) and S =
sum w_j f(v_j), the odds against the top class after Psi are

    Q = sum_{j>=1} h_j / h_0 = S (1 + gamma log1p(R) / R) exp(-gap / T + gamma log(1 - v_0)),

its probability is 1 / (1 + Q), its NLL log1p(Q); that of a label y which is not the top class is
(s_0 - s_y) / T - gamma log(1 - v_0) - log(f(v_y) (1 + gamma log1p(R) / R)) + log1p(Q). Nothing here is a
difference of nearly equal numbers or overflows, and the sums leave out only what float64 would round away.

Psi keeps the order of classes, so whether a sample is classified correctly depends on neither gamma nor T. S
is found in one of two ways. Directly: -log(1 - v_j) and B(v_j) = v_j u_j / (1 - v_j) serve all gammas, and
f(v_j) = exp(-gamma log(1 - v_j)) / (1 + gamma B(v_j)). Or, where many classes and gammas share the work, by
moments: f is the same function of u for all samples. On each segment of u it is a polynomial (`focal_table`),
and of the classes with u in that segment only the moments sum w_j t_j^m matter, which serve all gammas.

Direct sums run over samples, one class at a time: loops over a few classes are too short to be vectorised.
"""

import numpy as np
from numba import njit

from focalcal.calibration.kernels.binned import CELLS, authors_ece, fill_cells, split_ece, width_ece
from focalcal.calibration.kernels.focal_table import TERMS
from focalcal.calibration.kernels.vector_math import ANY_ORDER, EXACT, exp, exp_far, log, total

BLOCK = 128
"""Samples are taken in blocks whose intermediate results stay in the processor's cache."""
DESCRIPTION = 9
"""Numbers that describe a sample at a temperature."""


@njit(**EXACT)
def weigh_by_class(drops, beta, weights, tops, start, end):
    """Fill `weights` (k-1, BLOCK) with w, and tops[0, start:end] with W, of these samples at T = 1 / beta."""
    sums = tops[0, start:end]
    sums[:] = 0.0
    for j in range(drops.shape[0]):
        own_drops, own_weights = drops[j, start:end], weights[j]
        for i in range(sums.shape[0]):
            weight = exp(-min(own_drops[i] * beta, 700.0))
            own_weights[i] = weight
            sums[i] += weight


@njit(**EXACT)
def weigh_by_sample(drops, beta, weights, tops, start, end):
    """Fill the same by sample, from drops (n, k-1) into `weights` (BLOCK, k-1)."""
    for i in range(start, end):
        own_drops, own_weights = drops[i], weights[i - start]
        for j in range(own_drops.shape[0]):
            own_weights[j] = exp(-min(own_drops[j] * beta, 700.0))
        tops[0, i] = total(own_weights)


@njit(**EXACT)
def describe(samples, beta, tops, start, end):
    """Fill the other rows of tops[:, start:end].

    They are -gap / T, log1p(R), log(1 - v_0), D = 1 - log1p(R) / R, D / R, v_j / w_j and, of the label y of a
    misclassified sample, -log(1 - v_y) and B(v_y), else 0.
    """
    gaps, label_gaps, misclassified = samples[1][start:end], samples[2][start:end], samples[3][start:end]
    sums, exponents, log_ones = tops[0, start:end], tops[1, start:end], tops[2, start:end]
    log_rests, defects, ratios = tops[3, start:end], tops[4, start:end], tops[5, start:end]
    scales, label_logs, label_ratios = tops[6, start:end], tops[7, start:end], tops[8, start:end]
    for i in range(sums.shape[0]):
        exponent = -gaps[i] * beta
        odds = exp_far(exponent)
        rest = odds * sums[i]
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
        scales[i] = odds / one
        u = label_gaps[i] * beta + log_one
        v = exp_far(-u) * misclassified[i]
        label_logs[i] = -log(1.0 - v)
        label_ratios[i] = v * u / (1.0 - v)


@njit(**EXACT)
def sum_directly(drops, gammas, beta, weights, tops, factors, sums, start, end):
    """Fill sums[:, start:end] with S at each gamma; `factors` (2, k-1, BLOCK) is scratch."""
    exponents, log_ones, scales = tops[1, start:end], tops[2, start:end], tops[6, start:end]
    for j in range(drops.shape[0] if np.any(gammas != 0.0) else 0):
        own_drops, own_weights, logs, ratios = drops[j, start:end], weights[j], factors[0, j], factors[1, j]
        for i in range(scales.shape[0]):
            v = own_weights[i] * scales[i]
            logs[i] = -log(1.0 - v)
            ratios[i] = v * (own_drops[i] * beta - exponents[i] + log_ones[i]) / (1.0 - v)
    for g in range(gammas.shape[0]):
        gamma, own_sums = gammas[g], sums[g, start:end]
        if gamma == 0.0:
            own_sums[:] = tops[0, start:end]
            continue
        own_sums[:] = 0.0
        for j in range(drops.shape[0]):
            own_weights, logs, ratios = weights[j], factors[0, j], factors[1, j]
            for i in range(own_sums.shape[0]):
                own_sums[i] += own_weights[i] * exp(gamma * logs[i]) / (1.0 + gamma * ratios[i])


@njit(**EXACT)
def sum_by_moments(table, beta, weights, tops, own, sums, start, end):
    """Fill sums[:, start:end] with S at each gamma; `own` (gammas,) is scratch. Overwrites `weights`."""
    coefficients, edges, farthest, drops = table
    for i in range(start, end):
        # w_j (f(v_j) - 1) falls like exp(-drops_j / T - u_j): behind last_drop it is negligible.
        lowest = tops[2, i] - tops[1, i]
        last_drop = 0.5 * (farthest - lowest) / beta
        focal_sums(drops[i], weights[i - start], last_drop, beta, lowest, coefficients, edges, own)
        for g in range(own.shape[0]):
            sums[g, i] = tops[0, i] + own[g]


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
def finish(gamma, beta, tops, sums, misclassified, label_gaps, confidences, losses):
    """Fill confidences and NLLs of all samples at one gamma from their S."""
    # At gamma = -1, 1 + gamma log1p(R) / R = D underflows with R. D / R does not; log R is added instead.
    least = 1.0 if gamma == -1.0 else 0.0
    for i in range(confidences.shape[0]):
        denominator = (1.0 + gamma) - gamma * tops[4, i]
        odds = sums[i] * denominator * exp_far(tops[1, i] + gamma * tops[3, i])
        one = 1.0 + odds
        inverse = 1.0 / one
        confidences[i] = 1.0 - odds * inverse if odds < 1.0 else inverse
        denominator = tops[5, i] if least != 0.0 else denominator
        denominator = denominator if misclassified[i] != 0.0 else 1.0
        quotient = one * (1.0 + gamma * tops[8, i]) / denominator
        rest = label_gaps[i] * beta - gamma * (tops[3, i] + tops[7, i]) - least * (tops[2, i] + tops[3, i])
        losses[i] = log(quotient) + (odds - (one - 1.0)) * inverse + misclassified[i] * rest


def fill_surfaces(samples, points, table, binning, out):
    """Fill out[:, p, g] with NLL, equal-width ECE and equal-mass ECE (only NLL where `out` has one row).

    samples: drops (k-1, n), gaps (n,), label gaps s_0 - s_y (n,), misclassified (n,) as 0.0 or 1.0.
    points: the numbers p to evaluate; temperatures (p,); gammas (1 or p, g).
    table: for moments, coefficients and edges from `focal_table`, the u behind which f(v) - 1 does not
    matter, and drops by sample (n, k-1); to evaluate directly, a table without segments.
    binning: inner edges of the bins of equal width; the sorted positions at which the groups of equal mass
    begin ("split"); the positions of their edges ("authors", else empty), and the relative difference up to
    which confidences are tied with an edge.
    """
    drops, _, label_gaps, misclassified = samples
    numbers, temperatures, gammas = points
    moments = table[0].shape[0] > 0
    inner_edges, ranks, positions, rounding = binning
    classes, count = drops.shape
    width = gammas.shape[1]
    weights, factors = np.empty((classes, BLOCK)), np.empty((2, classes, BLOCK))
    sample_weights, own_sums = np.empty((BLOCK, classes)), np.empty(width)
    tops, sums = np.empty((DESCRIPTION, count)), np.empty((width, count))
    confidences, losses = np.empty(count), np.empty(count)
    keys, order = np.empty(count, np.int64), np.empty(count, np.int64)
    starts, cell_gaps = np.empty(CELLS + 2, np.int64), np.empty(CELLS + 1)
    for p in numbers:
        own = p if gammas.shape[0] > 1 else 0
        beta = 1.0 / temperatures[p]
        for start in range(0, count, BLOCK):
            end = min(start + BLOCK, count)
            if moments:
                weigh_by_sample(table[3], beta, sample_weights, tops, start, end)
                describe(samples, beta, tops, start, end)
                sum_by_moments(table, beta, sample_weights, tops, own_sums, sums, start, end)
            else:
                weigh_by_class(drops, beta, weights, tops, start, end)
                describe(samples, beta, tops, start, end)
                sum_directly(drops, gammas[own], beta, weights, tops, factors, sums, start, end)
        for g in range(width):
            finish(gammas[own, g], beta, tops, sums[g], misclassified, label_gaps, confidences, losses)
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
    count = gaps.shape[0]
    weights, tops = np.empty((drops.shape[0], BLOCK)), np.empty((DESCRIPTION, count))
    losses = np.empty(count)
    for p in numbers:
        beta = 1.0 / temperatures[p]
        for start in range(0, count, BLOCK):
            end = min(start + BLOCK, count)
            weigh_by_class(drops, beta, weights, tops, start, end)
            describe(samples, beta, tops, start, end)
        for i in range(count):
            minus_log = misclassified[i] * label_gaps[i] * beta + tops[2, i]
            log_other = -tops[7, i] if misclassified[i] != 0.0 else tops[3, i]
            losses[i] = exp_far(gamma * log_other) * minus_log
        out[p] = total(losses) / count
