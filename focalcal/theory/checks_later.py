"""Checks of statements that papers after K24 make about focal loss (S26) and temperature scaling (ML26).

S26: Shah, Cardone & Dytso 2026, arXiv:2603.02533. ML26: Mattei & Loureiro 2026, arXiv:2602.14862. Both are
judged by what their abstracts say.
"""

from collections.abc import Iterator

import numpy as np
from scipy.optimize import brentq
from scipy.special import entr, rel_entr, softmax

from focalcal.common.checks import Check
from focalcal.theory.checks import largest, simplex_sample, smallest
from focalcal.theory.proper import conditional_risk
from focalcal.theory.psi import psi_inverse

GAMMAS = (0.5, 1.0, 2.0, 3.0, 5.0)
LADDER = 0.5 ** np.arange(1, 21)[None]
"""Probabilities from a half to a millionth, (1, 20), before they are divided by their sum."""
TINY = 1e-6
SCALERS = 500


def later_checks() -> Iterator[Check]:
    """Yield every check of S26 and ML26."""
    yield from _focal_entropy()
    yield from _focal_minimiser()
    yield from _temperature_and_uncertainty()
    yield from _sequences()
    yield from _linear_scalers()


def _focal_entropy() -> Iterator[Check]:
    """Yield the convexity of focal-entropy in the prediction, and that no other point reaches its minimum."""
    bends, margins, places = [], [], []
    for classes in (2, 3, 10, 100):
        truth, one, other = (simplex_sample(classes, 400, seed=seed) for seed in (12, 13, 14))
        one, other = (0.999 * q + 0.001 / classes for q in (one, other))
        for gamma in GAMMAS:
            ends = conditional_risk(one, truth, gamma) + conditional_risk(other, truth, gamma)
            bends.append(ends / 2 - conditional_risk((one + other) / 2, truth, gamma))
            least = conditional_risk(psi_inverse(truth, gamma), truth, gamma)
            margins.append(conditional_risk(one, truth, gamma) - least)
            places += [(classes, gamma)] * len(truth)
    label = "classes, gamma"
    yield smallest("s26_convexity_margin", np.concatenate(bends), places, label)
    yield smallest("s26_minimum_margin", np.concatenate(margins), places, label)


def _focal_minimiser() -> Iterator[Check]:
    """Yield how far the minimiser q of focal-entropy is from the posterior p, and where q / p is high."""
    truth = LADDER / LADDER.sum()
    distances, peaks, tops = [], [], []
    for gamma in GAMMAS:
        q = psi_inverse(truth, gamma)
        ratio = (q / truth)[0]
        distances.append(np.abs(q - truth).sum() / 2)
        peaks.append(ratio[1:-1].max() - max(ratio[0], ratio[-1]))
        tops.append(1.0 - ratio[0])
    scope = f"20 classes with p from 1/2 to {truth.min():.1g}; gamma"
    yield largest("s26_departure", distances, GAMMAS, f"total variation, {scope}")
    yield smallest("s26_amplified_middle_margin", peaks, GAMMAS, f"peak of q / p above both ends, {scope}")
    yield smallest("s26_suppressed_top_margin", tops, GAMMAS, f"1 - q / p of the top class, {scope}")
    shared = np.array([[TINY, *[(1.0 - TINY) / 5] * 5], [TINY, 1.0 - 2 * TINY, *[TINY / 4] * 4]])
    ratios = np.array([(psi_inverse(shared, gamma) / shared)[:, 0] for gamma in GAMMAS])
    detail = (
        f"q / p of a class with p = {TINY:g} beside five equal ones, smallest of 5 gammas; beside one class "
    )
    detail += f"with nearly all probability at least {ratios[:, 1].min():.3g}"
    yield Check("s26_rare_class_ratio", ratios[:, 0].min(), detail)


def _temperature_and_uncertainty() -> Iterator[Check]:
    """Yield that a higher T is less certain, and that no other model of its entropy is closer."""
    temperatures = np.geomspace(0.2, 5.0, 25)
    entropies, majorisation, projection = [], [], []
    for classes in (2, 3, 10, 100):
        logits = np.log(simplex_sample(classes, 400, seed=15) + 1e-9)
        tempered = softmax(logits / temperatures[:, None, None], axis=2)
        entropies.append(np.diff(entr(tempered).sum(axis=2), axis=0).min())
        leading = np.cumsum(-np.sort(-tempered, axis=2), axis=2)
        majorisation.append(-np.diff(leading, axis=0).max())
        others = softmax(np.random.default_rng(16).normal(size=(100, classes)), axis=1)
        for row, other in zip(logits[:100], others, strict=True):
            projection.append(_distance_gap(row, other))
    detail = "least change of entropy, 25 temperatures from 0.2 to 5, 2 to 100 classes"
    yield Check("ml26_entropy_margin", min(entropies), detail)
    detail = "least fall of the sum of the k largest probabilities, every k"
    yield Check("ml26_majorisation_margin", min(majorisation), detail)
    detail = f"KL(q, p) - KL(p_T, p) for q of the same entropy, least of {len(projection)} pairs"
    yield Check("ml26_projection_margin", min(projection), detail)


def _distance_gap(logits: np.ndarray, other: np.ndarray) -> float:
    """Return how much farther from softmax(logits) `other` is than the tempered model of its entropy."""
    entropy = entr(other).sum()
    excess = lambda log_t: entr(softmax(logits / np.exp(log_t))).sum() - entropy  # noqa: E731
    model = softmax(logits)
    tempered = softmax(logits / np.exp(brentq(excess, -12.0, 12.0, xtol=1e-13)))
    return float(rel_entr(other, model).sum() - rel_entr(tempered, model).sum())


def _sequences() -> Iterator[Check]:
    """Yield a sequence model whose entropy falls where T, applied token by token, rises.

    The first token is followed by one of 1,000 equally likely tokens in nine of ten cases, else by one token.
    """
    first = np.log([0.9, 0.1])
    entropy = {}
    for temperature in (1.0, 2.0):
        p = softmax(first / temperature)
        entropy[temperature] = entr(p).sum() + p[0] * np.log(1000.0)
    detail = f"entropy {entropy[1.0]:.3f} nats at T = 1, {entropy[2.0]:.3f} at T = 2"
    yield Check("ml26_sequence_entropy_change", entropy[2.0] - entropy[1.0], detail)


def _linear_scalers() -> Iterator[Check]:
    """Yield how many linear scalers W z + b near the identity change the predicted class of some logits."""
    generator = np.random.default_rng(17)
    logits = 30.0 * generator.normal(size=(5000, 3))
    # Nearly tied top classes show a small change.
    logits[:, 1] = logits[:, 0] + 0.1 * generator.normal(size=len(logits))
    predicted = logits.argmax(axis=1)
    matrices = np.eye(3) + 0.1 * generator.normal(size=(SCALERS, 3, 3))
    biases = 0.1 * generator.normal(size=(SCALERS, 3))
    shared = 0.1 * generator.normal(size=3)

    def changes(matrix: np.ndarray, bias: np.ndarray) -> bool:
        return bool(np.any((logits @ matrix.T + bias).argmax(axis=1) != predicted))

    changed = [changes(*scaler) for scaler in zip(matrices, biases, strict=True)]
    kept = [not changes(np.eye(3) / t + shared, np.full(3, 0.3)) for t in (0.5, 1.0, 2.0, 5.0)]
    share = sum(changed) / len(changed)
    yield Check("ml26_scalers_that_change_predictions", share, f"of {SCALERS} random ones, 3 classes")
    detail = "share of 4 temperatures, with the same number added to all classes"
    yield Check("ml26_temperatures_that_keep_predictions", sum(kept) / len(kept), detail)
