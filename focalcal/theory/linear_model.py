"""Focal loss and cross-entropy on a two-weight logistic regression (M20 Appendix G, Figures 5 and 6).

M20: each class has two normal clusters, the four means on the vertices of a square, linearly separable; 10 %
of the labels are flipped; sigmoid(w1 x1 + w2 x2) is fitted by gradient descent with both losses. M20 does not
give the clusters' spread, the sample size or the step size; they are parameters here. "Flipped" is read in
two ways: as written, or as the `flip_y=0.1` of scikit-learn's `make_classification`, whose data App. G seems
to describe: it draws 10 % of the labels anew, which flips half of them.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit

from focalcal.theory.arguments import checked_gamma
from focalcal.theory.settings import TheorySettings

VERTICES = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
"""Cluster means; the first coordinate's sign is the class."""
RECORDED_STEPS = 120
TEST_SEED_OFFSET = 1_000_000
FLIPPED, REDRAWN = "flipped", "redrawn"
"""What happens to 10 % of the labels."""
LOSSES = {"ce": 0.0, "focal-1": 1.0}
"""M20 compares cross-entropy with focal loss at gamma = 1."""
Row = dict[str, float | str]


@dataclass(frozen=True)
class Sample:
    """Points (n, 2) and labels (n,) in {-1, 1}, a fraction of them flipped."""

    points: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True)
class Fits:
    """Trainings of d models: steps (m,), norms of weights and logits (d, m), final weights (d, 2)."""

    steps: np.ndarray
    weight_norms: np.ndarray
    logit_norms: np.ndarray
    weights: np.ndarray


def draw_sample(
    size: int, seed: int, spread: float = 0.5, flipped: float = 0.1, noise: str = FLIPPED
) -> Sample:
    """Return `size` points, a quarter per cluster, with exactly round(flipped * size) labels flipped.

    With `noise` redrawn, these labels are drawn anew, with equal probabilities.
    """
    generator = np.random.default_rng(seed)
    cluster = np.arange(size) % len(VERTICES)
    points = VERTICES[cluster] + spread * generator.standard_normal((size, 2))
    labels = np.sign(VERTICES[cluster, 0])
    flips = generator.choice(size, size=round(flipped * size), replace=False)
    labels[flips] *= -1.0 if noise == FLIPPED else generator.choice([-1.0, 1.0], size=len(flips))
    return Sample(points, labels)


def fit_linear_models(
    samples: Sequence[Sample], gamma: float, steps: int = 10_000, learning_rate: float = 0.1
) -> Fits:
    """Return one training per sample (all of one size): gradient descent on the mean focal loss from w = 0.

    gamma >= 0; 0 is cross-entropy. With z = y w.x and p = sigmoid(z) the true class's probability,
    -dL/dz = (1-p) phi^gamma(p) = (1-p)^gamma (1 - p - gamma p log p) (M20 Eq. (4)).
    """
    gamma = checked_gamma(gamma, minimum=0.0)
    signed = np.stack([sample.points * sample.labels[:, None] for sample in samples])
    recorded = np.unique(np.geomspace(1, steps, RECORDED_STEPS).astype(int))
    weights = np.zeros((len(signed), 2, 1))
    weight_norms: list[np.ndarray] = []
    logit_norms: list[np.ndarray] = []
    for step in range(1, steps + 1):
        margins = signed @ weights
        miss = expit(-margins)
        pull = miss**gamma * (miss - gamma * (1.0 - miss) * log_expit(margins)) if gamma else miss
        weights = weights + learning_rate * (signed.transpose(0, 2, 1) @ pull) / signed.shape[1]
        if step == recorded[len(weight_norms)]:
            weight_norms.append(np.linalg.norm(weights[..., 0], axis=1))
            logit_norms.append(np.linalg.norm((signed @ weights)[..., 0], axis=1))
    return Fits(recorded, np.array(weight_norms).T, np.array(logit_norms).T, weights[..., 0])


def misclassified_confidences(sample: Sample, weights: np.ndarray) -> np.ndarray:
    """Return the confidence, in [0.5, 1], of each point that the model with `weights` (2,) misclassifies."""
    margin = (sample.points @ weights) * sample.labels
    return expit(np.abs(margin[margin < 0]))


def run_experiment(settings: TheorySettings) -> tuple[list[Row], list[Row]]:
    """Return both losses trained on every noise, spread and seed of `settings`, as two tables.

    The first has one row per loss and dataset: final norms, and the confidence of test mistakes. The second
    has one row per recorded step of these: the norms of weights and logits.
    """
    size = settings.linear_model_samples
    datasets = list(
        itertools.product((FLIPPED, REDRAWN), settings.linear_model_spreads, settings.linear_model_seeds)
    )
    train = [draw_sample(size, seed, spread, noise=noise) for noise, spread, seed in datasets]
    rows: list[Row] = []
    history: list[Row] = []
    for loss, gamma in LOSSES.items():
        fits = fit_linear_models(train, gamma, settings.linear_model_steps)
        for index, (noise, spread, seed) in enumerate(datasets):
            name: Row = {"noise": noise, "spread": float(spread), "seed": seed, "loss": loss}
            test = draw_sample(4 * size, TEST_SEED_OFFSET + seed, spread, noise=noise)
            norms: list[Row] = [
                {"step": int(step), "weight_norm": float(weight_norm), "logit_norm": float(logit_norm)}
                for step, weight_norm, logit_norm in zip(
                    fits.steps, fits.weight_norms[index], fits.logit_norms[index], strict=True
                )
            ]
            history += [name | recorded for recorded in norms]
            confidences = misclassified_confidences(test, fits.weights[index])
            rows.append(
                name
                | {
                    "weight_1": float(fits.weights[index, 0]),
                    "weight_2": float(fits.weights[index, 1]),
                    "weight_norm": norms[-1]["weight_norm"],
                    "logit_norm": norms[-1]["logit_norm"],
                    "test_mistakes": len(confidences),
                    "mistakes_above_90": float(np.mean(confidences > 0.9)),
                    "median_mistake_confidence": float(np.median(confidences)),
                }
            )
    return rows, history
