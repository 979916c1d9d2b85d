"""Checks of the theoretical statements of M20 (Mukhoti et al. 2020)."""

import math

import numpy as np
from scipy.special import lambertw, xlogy

from focalcal.theory.checks import TheoryCheck, binary_rows, largest, simplex_sample, smallest
from focalcal.theory.gamma_star import gamma_star, gradient_ratio
from focalcal.theory.proper import conditional_risk, focal_loss
from focalcal.theory.psi import psi_inverse

THRESHOLDS = np.linspace(0.01, 0.49, 97)
GAMMAS = (0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0)
PROBABILITIES = np.linspace(0.001, 0.999, 999)


def m20_checks() -> dict[str, TheoryCheck]:
    """Return every check of M20 by name."""
    return {**_gradients(), **_proposition_2(), **_lambert_branches(), **_entropy()}


def _gradients() -> dict[str, TheoryCheck]:
    """Return Prop. 1 against a numerical derivative, and the values and shape of g quoted in the text."""
    step = 1e-6
    errors = []
    for gamma in GAMMAS:
        slope = focal_loss(PROBABILITIES + step, gamma) - focal_loss(PROBABILITIES - step, gamma)
        entropy_slope = -np.log(PROBABILITIES + step) + np.log(PROBABILITIES - step)
        errors.append(np.abs(slope / entropy_slope - gradient_ratio(PROBABILITIES, gamma)).max())
    turns = [int(np.sum(np.diff(np.sign(np.diff(gradient_ratio(PROBABILITIES, g)))) != 0)) for g in GAMMAS]
    return {
        "m20_gradient_ratio_difference": TheoryCheck(max(errors), "against a central difference, 7 gammas"),
        "m20_ratio_turning_points": TheoryCheck(
            max(turns), "g rises, then falls: one turning point, 7 gammas"
        ),
        "m20_ratio_at_019_gamma_5": TheoryCheck(float(gradient_ratio(0.19, 5.0))),
        "m20_ratio_at_05_gamma_7": TheoryCheck(float(gradient_ratio(0.5, 7.0))),
    }


def _proposition_2() -> dict[str, TheoryCheck]:
    """Return Prop. 2: g(p0, gamma*) = 1, and g <= 1 for every larger p and gamma."""
    residuals, excesses, places = [], [], []
    for p0 in THRESHOLDS:
        gamma = gamma_star(p0)
        residuals.append(abs(float(gradient_ratio(p0, gamma)) - 1.0))
        p = np.linspace(p0, 1.0, 200)
        for factor in (1.0, 1.01, 1.5, 3.0, 10.0):
            ratio = gradient_ratio(p, factor * gamma)
            excesses.append(float(ratio.max()) - 1.0)
            places.append((p0, factor * gamma))
    return {
        "m20_gamma_star_residual": largest(np.array(residuals), THRESHOLDS, "p0"),
        "m20_gamma_star_excess": largest(np.array(excesses), np.array(places), "p0, gamma"),
        "m20_gamma_star_at_010": TheoryCheck(gamma_star(0.10)),
        "m20_gamma_star_at_020": TheoryCheck(gamma_star(0.20)),
        "m20_gamma_star_at_025": TheoryCheck(gamma_star(0.25)),
    }


def _lambert_branches() -> dict[str, TheoryCheck]:
    """Return the claims of App. B on its Lambert argument: its minimum, and the gamma of the other branch."""
    p0 = np.linspace(0.01, 0.99, 981)
    a, b = 1.0 - p0, p0 * np.log(p0)
    argument = -(a ** (1.0 - a / b)) / b * np.log(a)
    low = p0 < 0.5
    principal = a[low] / b[low] + lambertw(np.maximum(argument[low], -1.0 / math.e), 0).real / np.log(a[low])
    return {
        "m20_lambert_argument_least": TheoryCheck(float(argument.min()), f"p0 = {p0[argument.argmin()]:.3g}"),
        "m20_lambert_argument_least_at": TheoryCheck(float(p0[argument.argmin()])),
        "m20_principal_branch_gamma": TheoryCheck(
            float(principal.max()), "0 up to rounding for every p0 < 0.5"
        ),
    }


def _entropy() -> dict[str, TheoryCheck]:
    """Return App. H: the entropy bound for gamma >= 1, and the entropy of the binary minimiser."""
    margins, places = [], []
    for classes in (2, 3, 10):
        p, q = simplex_sample(classes, 4000, seed=4), simplex_sample(classes, 4000, seed=5)
        q = np.random.default_rng(6).permutation(q)
        cross = -xlogy(p, q).sum(axis=1)
        for gamma in (1.0, 2.0, 5.0, 10.0):
            bound = cross + gamma * xlogy(q, q).sum(axis=1)
            margins.append(conditional_risk(q, p, gamma) - bound)
            places += [(classes, gamma)] * len(p)
    posterior = binary_rows(PROBABILITIES[PROBABILITIES != 0.5])
    gain = [_entropy_of(psi_inverse(posterior, gamma)) - _entropy_of(posterior) for gamma in GAMMAS]
    return {
        "m20_entropy_bound_margin": smallest(np.concatenate(margins), np.array(places), "classes, gamma"),
        "m20_minimiser_entropy_margin": smallest(np.min(gain, axis=0), posterior[:, 0], "p"),
    }


def _entropy_of(rows: np.ndarray) -> np.ndarray:
    """Return the entropy of each row, (n,)."""
    return -xlogy(rows, rows).sum(axis=1)
