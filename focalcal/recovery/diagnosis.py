"""How many test points of a focal model are under- or overconfident, from its logits alone (C21)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from focalcal.theory.psi import log_psi
from focalcal.theory.thresholds import confidence_region

REGIONS = ("under", "over", "ambiguous")


def diagnose(
    logits: ArrayLike, gamma: float, posterior: NDArray[np.float64] | None = None
) -> dict[str, float]:
    """Return shares of the samples whose largest probability q is below or above what it should be.

    `logits` (n, k) are of a model trained with focal loss of `gamma` > 0. By C21 Theorem 8's regions of q:
    `region_under`, `region_over`, `region_ambiguous` (either is possible). By comparing max q with
    max Psi(q), section 5.1: `psi_under`, `psi_over`. With the true `posterior` (n, k), by Definition 7:
    `true_under`, `true_over`, and `psi_right`, the share where Psi agrees with the posterior. Uniform
    predictions, for which all agree, count as neither.
    """
    logits = np.asarray(logits, np.float64)
    uniform = np.ptp(logits, axis=1) == 0
    raw = log_psi(logits, 0.0).max(axis=1)
    region = confidence_region(np.exp(raw), gamma)
    # Logarithms still differ where the largest probabilities both round to 1.
    by_psi = _signs(raw, log_psi(logits, gamma).max(axis=1), uniform)
    masks = {f"region_{name}": (region == name) & ~uniform for name in REGIONS}
    masks |= {"psi_under": by_psi < 0, "psi_over": by_psi > 0}
    if posterior is not None:
        by_truth = _signs(np.exp(raw), posterior.max(axis=1), uniform)
        masks |= {"true_under": by_truth < 0, "true_over": by_truth > 0, "psi_right": by_psi == by_truth}
    return {name: float(np.mean(mask)) for name, mask in masks.items()}


def _signs(confidence: NDArray, reference: NDArray, uniform: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return -1 where the confidence is too low, 1 where it is too high, 0 where they agree."""
    return np.where(uniform, 0.0, np.sign(confidence - reference))
