"""The tables of confidence thresholds, of overconfident class counts, and of gamma*."""

from collections.abc import Sequence

from focalcal.theory.gamma_star import gamma_star, gamma_star_inverse
from focalcal.theory.thresholds import (
    largest_overconfident_gamma,
    largest_overconfident_gamma_near_uniform,
    overconfidence_threshold,
    underconfidence_threshold,
)

Row = dict[str, float]
MOST_CLASSES = 20


def threshold_rows(gammas: Sequence[float]) -> list[Row]:
    """Return tau_oc and tau_uc = p0 (C21 Theorem 8, M20 Prop. 2) for each gamma."""
    return [
        {
            "gamma": float(gamma),
            "tau_oc": overconfidence_threshold(gamma),
            "tau_uc": underconfidence_threshold(gamma),
        }
        for gamma in gammas
    ]


def overconfidence_rows() -> list[Row]:
    """Return, for each class count, the gamma below which the focal minimiser can be overconfident."""
    return [
        {
            "classes": classes,
            "near_uniform_gamma": largest_overconfident_gamma_near_uniform(classes),
            "anywhere_gamma": largest_overconfident_gamma(classes),
        }
        for classes in range(2, MOST_CLASSES + 1)
    ]


def gamma_star_rows() -> list[Row]:
    """Return gamma*(p0) for p0 = 0.01, ..., 0.50, with the p0 recovered by its inverse."""
    rows = []
    for percent in range(1, 51):
        p0 = percent / 100.0
        gamma = gamma_star(p0)
        rows.append(
            {"p0": p0, "gamma_star": gamma, "p0_back": gamma_star_inverse(gamma) if gamma > 0 else 0.5}
        )
    return rows
