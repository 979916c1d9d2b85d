"""Checks of the theoretical statements of C21 (Charoenphakdee et al. 2021) and its slides."""

import numpy as np

from focalcal.theory.checks import TheoryCheck, binary_rows, largest, simplex_sample, smallest
from focalcal.theory.proper import keeps_order
from focalcal.theory.psi import psi, psi_inverse
from focalcal.theory.thresholds import (
    largest_overconfident_gamma,
    largest_overconfident_gamma_near_uniform,
    minimiser_confidence,
    overconfidence_threshold,
    underconfidence_threshold,
)

GAMMAS = (0.02, 0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
MOST_CLASSES = 50


def c21_checks() -> dict[str, TheoryCheck]:
    """Return every check of C21 by name."""
    return {**_order_and_recovery(), **_theorem_8(), **_footnote_2(), **_figure_2(), **_slides()}


def _order_and_recovery() -> dict[str, TheoryCheck]:
    """Return Theorem 3's order, Theorem 11's recovery, Prop. 6's fixed points, Prop. 12's argmax."""
    kept, argmax, errors, moved = [], [], [], []
    for classes in (2, 3, 10, 100):
        posterior = simplex_sample(classes, 400, seed=7)
        for gamma in GAMMAS:
            q = psi_inverse(posterior, gamma)
            recovered = psi(q, gamma)
            kept.append(keeps_order(q, gamma).mean())
            argmax.append((recovered.argmax(axis=1) == q.argmax(axis=1)).mean())
            errors.append(np.abs(recovered - posterior).max())
        for shared in range(1, classes + 1):
            even = np.where(np.arange(classes) < shared, 1.0 / shared, 0.0)[None]
            moved += [np.abs(psi(even, gamma) - even).max() for gamma in GAMMAS]
    negative = [
        keeps_order(simplex_sample(k, 2000, seed=8), g).mean() for k in (2, 3, 10) for g in (-0.9, -0.5)
    ]
    return {
        "c21_order_kept": TheoryCheck(min(kept), "fraction of rows; 2 to 100 classes, 8 gammas"),
        "c21_argmax_kept": TheoryCheck(min(argmax), "fraction of rows; 2 to 100 classes, 8 gammas"),
        "c21_recovery_error": TheoryCheck(
            max(errors), "max |Psi(Psi^-1(eta)) - eta|; 2 to 100 classes, 8 gammas"
        ),
        "c21_fixed_point_error": TheoryCheck(max(moved), "uniform over a subset of the classes"),
        "order_kept_negative_gamma": TheoryCheck(min(negative), "fraction of rows; gamma -0.9 and -0.5"),
        "c21_improperness": TheoryCheck(
            float(np.abs(psi_inverse([[0.9, 0.1]], 0.02)[0, 0] - 0.9)), "|q - eta| at eta 0.9, gamma 0.02"
        ),
    }


def _theorem_8() -> dict[str, TheoryCheck]:
    """Return the order of the thresholds, and the sign of max q - max eta on both sides of them."""
    gammas = np.geomspace(1e-3, 100.0, 60)
    over = np.array([overconfidence_threshold(gamma) for gamma in gammas])
    under = np.array([underconfidence_threshold(gamma) for gamma in gammas])
    order = np.min([over, under - over, 0.5 - under], axis=0)
    over_margin, under_margin, half_margin, binary_margin = [], [], [], []
    for classes in (2, 5, 30, 300):
        q = simplex_sample(classes, 3000, seed=9)
        spread = q.max(axis=1) - q.min(axis=1) > 1e-6
        q = q[spread & (q.max(axis=1) < 1 - 1e-6)]
        top = q.max(axis=1)
        for gamma in GAMMAS:
            surplus = top - psi(q, gamma).max(axis=1)
            over_margin.append(surplus[top <= overconfidence_threshold(gamma)])
            under_margin.append(-surplus[top >= underconfidence_threshold(gamma)])
            half_margin.append(-surplus[top > 0.5])
            if classes == 2:
                binary_margin.append(-surplus)
    return {
        "c21_threshold_order_margin": smallest(order, gammas, "gamma"),
        "c21_overconfident_margin": _least(over_margin),
        "c21_underconfident_margin": _least(under_margin),
        "c21_above_half_margin": _least(half_margin),
        "c21_binary_margin": _least(binary_margin),
    }


def _footnote_2() -> dict[str, TheoryCheck]:
    """Return the fewest classes with overconfidence, near the uniform distribution and anywhere."""
    near = [k for k in range(2, MOST_CLASSES) if largest_overconfident_gamma_near_uniform(k) > 0]
    anywhere = [k for k in range(2, MOST_CLASSES) if largest_overconfident_gamma(k) > 0]
    return {
        "c21_fewest_classes_near_uniform": TheoryCheck(near[0]),
        "c21_largest_gamma_near_uniform": TheoryCheck(largest_overconfident_gamma_near_uniform(near[0])),
        "c21_fewest_classes_anywhere": TheoryCheck(
            anywhere[0], f"for gamma below {largest_overconfident_gamma(anywhere[0]):.4f}"
        ),
    }


def _figure_2() -> dict[str, TheoryCheck]:
    """Return the growth of the binary gap with gamma, and the overconfidence of 1000 classes."""
    eta = np.linspace(0.51, 0.999, 100)
    gaps = np.array([eta - minimiser_confidence(eta, 2, gamma) for gamma in sorted(GAMMAS)])
    many = np.geomspace(0.0011, 0.3, 60)
    surplus = np.concatenate([minimiser_confidence(many, 1000, gamma) - many for gamma in GAMMAS])
    places = np.array([(gamma, eta_max) for gamma in GAMMAS for eta_max in many])
    return {
        "c21_binary_gap_growth_margin": TheoryCheck(
            float(np.diff(gaps, axis=0).min()), "over 100 posteriors"
        ),
        "c21_thousand_classes_surplus": largest(surplus, places, "gamma, max eta"),
    }


def _slides() -> dict[str, TheoryCheck]:
    """Return the slides' table: the minimiser for a true probability of 0.9, and Psi of it."""
    truth = binary_rows(np.array([0.9]))
    checks = {}
    for gamma in (1.0, 3.0, 5.0):
        q = psi_inverse(truth, gamma)
        checks[f"slides_minimiser_gamma_{gamma:g}"] = TheoryCheck(float(q[0, 0]))
        checks[f"slides_recovered_gamma_{gamma:g}"] = TheoryCheck(float(psi(q, gamma)[0, 0]))
    return checks


def _least(parts: list[np.ndarray]) -> TheoryCheck:
    """Return the minimum over all parts, with the number of points."""
    values = np.concatenate(parts)
    return TheoryCheck(float(values.min()), f"least over {len(values)} points")
