"""Checks of the theoretical statements of C21 (Charoenphakdee et al. 2021) and its slides."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from focalcal.common.checks import Check
from focalcal.theory.checks import binary_rows, largest, simplex_sample, smallest
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


def c21_checks() -> Iterator[Check]:
    """Yield every check of C21."""
    yield from _order_and_recovery()
    yield from _theorem_8()
    yield from _footnote_2()
    yield from _figure_2()
    yield from _slides()


def _order_and_recovery() -> Iterator[Check]:
    """Yield Theorem 3's order, Theorem 11's recovery, Prop. 6's fixed points, Prop. 12's argmax."""
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
    scope = "2 to 100 classes, 8 gammas"
    yield Check("c21_order_kept", min(kept), f"fraction of rows; {scope}")
    yield Check("c21_argmax_kept", min(argmax), f"fraction of rows; {scope}")
    yield Check("c21_recovery_error", max(errors), f"max |Psi(Psi^-1(eta)) - eta|; {scope}")
    yield Check("c21_fixed_point_error", max(moved), "uniform over a subset of the classes")
    yield Check("order_kept_negative_gamma", min(negative), "fraction of rows; gamma -0.9 and -0.5")
    distance = np.abs(psi_inverse([[0.9, 0.1]], 0.02)[0, 0] - 0.9)
    yield Check("c21_improperness", distance, "|q - eta| at eta 0.9, gamma 0.02")


def _theorem_8() -> Iterator[Check]:
    """Yield the order of the thresholds, and the sign of max q - max eta on both sides of them."""
    gammas = np.geomspace(1e-3, 100.0, 60)
    over = np.array([overconfidence_threshold(gamma) for gamma in gammas])
    under = np.array([underconfidence_threshold(gamma) for gamma in gammas])
    order = np.min([over, under - over, 0.5 - under], axis=0)
    margins = defaultdict(list)
    for classes in (2, 5, 30, 300):
        q = simplex_sample(classes, 3000, seed=9)
        spread = q.max(axis=1) - q.min(axis=1) > 1e-6
        q = q[spread & (q.max(axis=1) < 1 - 1e-6)]
        top = q.max(axis=1)
        for gamma in GAMMAS:
            surplus = top - psi(q, gamma).max(axis=1)
            margins["overconfident"].append(surplus[top <= overconfidence_threshold(gamma)])
            margins["underconfident"].append(-surplus[top >= underconfidence_threshold(gamma)])
            margins["above_half"].append(-surplus[top > 0.5])
            if classes == 2:
                margins["binary"].append(-surplus)
    yield smallest("c21_threshold_order_margin", order, gammas, "gamma")
    for name, parts in margins.items():
        values = np.concatenate(parts)
        yield Check(f"c21_{name}_margin", values.min(), f"least over {len(values)} points")


def _footnote_2() -> Iterator[Check]:
    """Yield the fewest classes with overconfidence, near the uniform distribution and anywhere."""
    near = [k for k in range(2, MOST_CLASSES) if largest_overconfident_gamma_near_uniform(k) > 0]
    anywhere = [k for k in range(2, MOST_CLASSES) if largest_overconfident_gamma(k) > 0]
    yield Check("c21_fewest_classes_near_uniform", near[0])
    yield Check("c21_largest_gamma_near_uniform", largest_overconfident_gamma_near_uniform(near[0]))
    detail = f"for gamma below {largest_overconfident_gamma(anywhere[0]):.4f}"
    yield Check("c21_fewest_classes_anywhere", anywhere[0], detail)


def _figure_2() -> Iterator[Check]:
    """Yield that the binary gap grows with gamma, and that 1000 classes can be overconfident."""
    eta = np.linspace(0.51, 0.999, 100)
    gaps = np.array([eta - minimiser_confidence(eta, 2, gamma) for gamma in sorted(GAMMAS)])
    many = np.geomspace(0.0011, 0.3, 60)
    surplus = np.concatenate([minimiser_confidence(many, 1000, gamma) - many for gamma in GAMMAS])
    places = np.array([(gamma, eta_max) for gamma in GAMMAS for eta_max in many])
    yield Check("c21_binary_gap_growth_margin", np.diff(gaps, axis=0).min(), "over 100 posteriors")
    yield largest("c21_thousand_classes_surplus", surplus, places, "gamma, max eta")


def _slides() -> Iterator[Check]:
    """Yield the slides' table: the minimiser where the truth is 0.9, and what Psi makes of it."""
    truth = binary_rows(np.array([0.9]))
    for gamma in (1.0, 3.0, 5.0):
        q = psi_inverse(truth, gamma)
        yield Check(f"slides_minimiser_gamma_{gamma:g}", q[0, 0])
        yield Check(f"slides_recovered_gamma_{gamma:g}", psi(q, gamma)[0, 0])
