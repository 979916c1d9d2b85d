"""The linear-model experiment of M20 Appendix G and its tables."""

from dataclasses import dataclass

import numpy as np

from focalcal.theory.linear_model import (
    Fits,
    Sample,
    draw_sample,
    fit_linear_models,
    misclassified_confidences,
)
from focalcal.theory.settings import TheorySettings

TEST_SEED_OFFSET = 1_000_000
LOSSES = {"ce": 0.0, "focal-1": 1.0}
"""M20 compares cross-entropy with focal loss at gamma = 1."""


@dataclass(frozen=True)
class Experiment:
    """Every dataset's spread and seed, train and test samples, and the trainings by loss name."""

    datasets: tuple[tuple[float, int], ...]
    train: tuple[Sample, ...]
    test: tuple[Sample, ...]
    fits: dict[str, Fits]


def run_experiment(settings: TheorySettings) -> Experiment:
    """Return both losses trained on every spread and seed of `settings`."""
    size = settings.linear_model_samples
    datasets = tuple(
        (spread, seed) for spread in settings.linear_model_spreads for seed in settings.linear_model_seeds
    )
    train = tuple(draw_sample(size, seed, spread) for spread, seed in datasets)
    test = tuple(draw_sample(4 * size, TEST_SEED_OFFSET + seed, spread) for spread, seed in datasets)
    fits = {
        name: fit_linear_models(train, gamma, settings.linear_model_steps) for name, gamma in LOSSES.items()
    }
    return Experiment(datasets, train, test, fits)


def experiment_rows(experiment: Experiment) -> list[dict[str, float | str]]:
    """Return one row per dataset and loss: final norms and the confidence in misclassified test points."""
    rows = []
    for name, fits in experiment.fits.items():
        for index, (spread, seed) in enumerate(experiment.datasets):
            confidences = misclassified_confidences(experiment.test[index], fits.weights[index])
            rows.append(
                {
                    "spread": float(spread),
                    "seed": seed,
                    "loss": name,
                    "weight_1": float(fits.weights[index, 0]),
                    "weight_2": float(fits.weights[index, 1]),
                    "weight_norm": float(fits.weight_norms[index, -1]),
                    "logit_norm": float(fits.logit_norms[index, -1]),
                    "test_mistakes": len(confidences),
                    "mistakes_above_90": float(np.mean(confidences > 0.9)),
                    "median_mistake_confidence": float(np.median(confidences)),
                }
            )
    return rows


def history_rows(experiment: Experiment) -> list[dict[str, float | str]]:
    """Return the norms of weights and logits with one row per dataset, loss and recorded step."""
    rows = []
    for name, fits in experiment.fits.items():
        for index, (spread, seed) in enumerate(experiment.datasets):
            columns = zip(fits.steps, fits.weight_norms[index], fits.logit_norms[index], strict=True)
            rows += [
                {
                    "spread": float(spread),
                    "seed": seed,
                    "loss": name,
                    "step": int(step),
                    "weight_norm": float(weight_norm),
                    "logit_norm": float(logit_norm),
                }
                for step, weight_norm, logit_norm in columns
            ]
    return rows
