"""The log-loss of Psi^gamma(softmax(scores)) and its gradient, row by row.

Notation of `theory.psi`: t is the top class of the scores u, `e_i = exp(u_i - u_t)`, `R` the sum of e_i over
i != t. With `c_i = 1 + R - e_i`, `l_i = log(1 + R) - (u_i - u_t)`, `d_i = c_i + gamma e_i l_i` and
`D = 1 + gamma log(1 + R) / R`, the logarithm of the ratio of class i to the top class is

    r_i = (u_i - u_t) + (1 - gamma) log c_i - log d_i + gamma log R + log D

and the loss of label y is `log(1 + sum of exp(r_i) over i != t) - r_y`. Since c_i >= 1 and
d_i >= (1 + gamma) c_i, nothing here overflows or cancels, however saturated the softmax is.
"""

import math

import numpy as np
from numba import njit

from focalcal.calibration.kernels.vector_math import ANY_ORDER, exp_far, log

SMALLEST_REST = 1e-290
"""Below this R, only its logarithm is used."""
SMALL_REST = 1e-4
"""Below this R, Taylor polynomials of log(1 + R) / R and its slope avoid cancellation."""
FAR_BELOW = -2000.0


def focal_map_loss(scores, labels, gamma):
    """Return the summed log-loss and its derivative by gamma; overwrite `scores` (n, k) by its gradient.

    `labels` (n,) are int64, gamma is above -1.
    """
    odds, residuals = np.empty(scores.shape[1]), np.empty(scores.shape[1])
    total_loss, total_slope = 0.0, 0.0
    for row in range(len(labels)):
        loss, slope = _row_loss(scores[row], labels[row], gamma, odds, residuals)
        total_loss += loss
        total_slope += slope
    return total_loss, total_slope


@njit(**ANY_ORDER)
def _row_loss(  # noqa: C901, PLR0912 - one loop per pass over the classes, which LLVM turns into vector code
    scores, label, gamma, odds, residuals
):
    classes = len(scores)
    top = 0
    for i in range(1, classes):
        if scores[i] > scores[top]:
            top = i
    highest = scores[top]
    for i in range(classes):
        scores[i] -= highest
        odds[i] = exp_far(scores[i])
    odds[top] = 0.0
    rest = 0.0
    for i in range(classes):
        rest += odds[i]
    if rest < SMALLEST_REST:
        return _saturated_row_loss(scores, top, label, gamma, odds, residuals)
    log_total, log_rest = math.log1p(rest), math.log(rest)
    if rest < SMALL_REST:
        b_top = 1.0 - rest * (1.0 / 2.0 - rest / 3.0)
        b_slope = -1.0 / 2.0 + rest * (2.0 / 3.0 - rest * 3.0 / 4.0)
    else:
        b_top = log_total / rest
        b_slope = (rest / (1.0 + rest) - log_total) / (rest * rest)
    denominator = 1.0 + gamma * b_top
    common = gamma * log_rest + math.log(denominator)
    for i in range(classes):
        c = (1.0 + rest) - odds[i]
        d = c + gamma * odds[i] * (log_total - scores[i])
        residuals[i] = scores[i] + (1.0 - gamma) * log(c) - log(d) + common
    of_label = 0.0 if label == top else residuals[label]
    residuals[top] = FAR_BELOW
    weight = 0.0
    for i in range(classes):
        residuals[i] = exp_far(residuals[i])
        weight += residuals[i]
    for i in range(classes):
        residuals[i] /= 1.0 + weight
    residuals[top] = 0.0
    if label != top:
        residuals[label] -= 1.0
    total, by_rest, by_gamma = 0.0, 0.0, 0.0
    for i in range(classes):
        odd, residual = odds[i], residuals[i]
        far = log_total - scores[i]
        c = (1.0 + rest) - odd
        over_c, over_d = 1.0 / c, 1.0 / (c + gamma * odd * far)
        total += residual
        by_rest += residual * ((1.0 - gamma) * over_c - (1.0 + gamma * odd / (1.0 + rest)) * over_d)
        by_gamma -= residual * (log(c) + odd * far * over_d)
        scores[i] = residual * (1.0 + odd * ((1.0 + gamma - gamma * far) * over_d - (1.0 - gamma) * over_c))
    by_gamma += total * (log_rest + b_top / denominator)
    by_rest += total * (gamma * b_slope / denominator + gamma / rest)
    along = 0.0
    scores[top] = 0.0
    for i in range(classes):
        scores[i] += odds[i] * by_rest
        along += scores[i]
    scores[top] = -along
    return math.log1p(weight) - of_label, by_gamma


@njit(**ANY_ORDER)
def _saturated_row_loss(gaps, top, label, gamma, shares, residuals):
    """As `_row_loss`, of gaps to the top score, in the limit of R = 0, where c_i = d_i = 1."""
    classes = len(gaps)
    second = -math.inf
    for i in range(classes):
        if i != top:
            second = max(second, gaps[i])
    rest = 0.0
    for i in range(classes):
        shares[i] = 0.0 if i == top else exp_far(gaps[i] - second)
        rest += shares[i]
    log_rest = second + math.log(rest)
    common = gamma * log_rest + math.log(1.0 + gamma)
    of_label = 0.0 if label == top else gaps[label] + common
    weight = exp_far((1.0 + gamma) * log_rest) * (1.0 + gamma)
    total, along = 0.0, 0.0
    for i in range(classes):
        residuals[i] = shares[i] / rest * weight / (1.0 + weight)
    if label != top:
        residuals[label] -= 1.0
    for i in range(classes):
        total += residuals[i]
    for i in range(classes):
        gaps[i] = residuals[i] + shares[i] / rest * gamma * total
        along += gaps[i]
    gaps[top] = -along
    return math.log1p(weight) - of_label, total * (log_rest + 1.0 / (1.0 + gamma))
