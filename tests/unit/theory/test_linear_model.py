"""The linear-model experiment: data by construction, the gradient, convergence to the exact optimum."""

import numpy as np
import pytest
from scipy.optimize import minimize

from focalcal.theory.checks_m20 import linear_model_checks
from focalcal.theory.linear_model import (
    FLIPPED,
    REDRAWN,
    draw_sample,
    fit_linear_models,
    misclassified_confidences,
)
from focalcal.theory.proper import focal_loss
from focalcal.theory.psi import psi_inverse


def mean_loss(weights, sample, gamma):
    """Return the mean focal loss of a linear model."""
    probability = 1 / (1 + np.exp(-(sample.points @ weights) * sample.labels))
    return focal_loss(probability, gamma).mean()


def test_sample_by_construction():
    sample = draw_sample(400, 3, spread=1e-9)
    assert np.abs(np.abs(sample.points) - 1).max() < 1e-6
    assert np.sum(np.sign(sample.points[:, 0]) != sample.labels) == 40
    again = draw_sample(400, 3, spread=1e-9)
    assert (again.points == sample.points).all()
    assert (again.labels == sample.labels).all()


def test_redrawn_labels_flip_half_as_many():
    sample = draw_sample(40_000, 3, spread=1e-9, noise=REDRAWN)
    wrong = np.sum(np.sign(sample.points[:, 0]) != sample.labels)
    assert abs(wrong - 2000) < 4 * np.sqrt(4000 * 0.25)


def test_the_optimum_of_each_reading_without_spread():
    """Cross-entropy predicts the share of unflipped labels: 0.9 as written, 0.95 with labels drawn anew."""
    for noise, confidence in ((FLIPPED, 0.9), (REDRAWN, 0.95)):
        sample = draw_sample(40_000, 0, spread=1e-6, noise=noise)
        weights = fit_linear_models([sample], 0.0, steps=2000).weights[0]
        assert 1 / (1 + np.exp(-np.abs(weights[0]))) == pytest.approx(confidence, abs=3e-3)


@pytest.mark.parametrize("gamma", [0.0, 1.0, 2.0])
def test_training_reaches_the_optimum(gamma):
    samples = [draw_sample(200, seed) for seed in (0, 1)]
    fits = fit_linear_models(samples, gamma, steps=4000)
    for sample, weights in zip(samples, fits.weights, strict=True):
        best = minimize(mean_loss, np.ones(2), args=(sample, gamma), method="BFGS", options={"gtol": 1e-10})
        assert weights == pytest.approx(best.x, abs=1e-4)
    assert fits.weight_norms[:, -1] == pytest.approx(np.linalg.norm(fits.weights, axis=1))
    assert fits.steps[-1] == 4000


def test_tight_clusters_give_the_focal_minimiser():
    # without spread there is one posterior, 0.9, and the confidence is its focal minimiser
    sample = draw_sample(4000, 0, spread=1e-6)
    for gamma in (0.0, 1.0):
        weights = fit_linear_models([sample], gamma, steps=3000).weights[0]
        confidence = 1 / (1 + np.exp(-np.abs(weights[0])))
        assert confidence == pytest.approx(psi_inverse([[0.9, 0.1]], gamma)[0, 0], abs=2e-3)


def test_misclassified_confidences_by_hand():
    sample = draw_sample(8, 0, spread=1e-9, flipped=0.25)
    found = misclassified_confidences(sample, np.array([2.0, 0.0]))
    assert found == pytest.approx([1 / (1 + np.exp(-2.0))] * 2, abs=1e-6)


def test_checks_by_hand():
    def row(loss, spread, weights, share, confidence, noise="flipped"):
        norm = {"weight_norm": np.hypot(*weights), "logit_norm": 2 * np.hypot(*weights)}
        values = {"weight_1": weights[0], "weight_2": weights[1], **norm}
        mistakes = {"mistakes_above_90": share, "median_mistake_confidence": confidence}
        return {"noise": noise, "spread": spread, "seed": 0, "loss": loss, **values, **mistakes}

    rows = [row("ce", 0.1, (4.0, 0.0), 0.5, 0.8), row("ce", 1.0, (0.0, 3.0), 0.1, 0.7)]
    rows += [row("focal-1", 0.1, (2.0, 0.0), 0.0, 0.6), row("focal-1", 1.0, (1.0, 1.0), 0.0, 0.65)]
    rows += [
        row(loss, 0.1, (4.0, 0.0), 0.7, c, noise="redrawn") for loss, c in (("ce", 0.9), ("focal-1", 0.5))
    ]
    checks = {check.name: check for check in linear_model_checks(rows)}
    values = {name: check.value for name, check in checks.items()}
    assert values == pytest.approx(
        {
            "m20_weight_norm_ratio": 1.0,
            "m20_logit_norm_ratio": 1.0,
            "m20_weight_norm_inverse_ratio": 2**0.5 / 3,
            "m20_direction_difference": 45.0,
            "m20_confident_mistakes": 0.7,
            "m20_mistake_confidence_margin": 0.05,
        }
    )
    assert checks["m20_weight_norm_ratio"].detail == "cross-entropy / focal = 1 to 2.12 over 3 datasets"
    assert checks["m20_confident_mistakes"].detail == (
        "above 90 % confidence: 50 % (flipped, spread 0.1), 10 % (flipped, spread 1), "
        "70 % (redrawn, spread 0.1)"
    )
    assert checks["m20_mistake_confidence_margin"].detail == "lower by 0.05 to 0.4"


def test_bad_gamma():
    with pytest.raises(ValueError, match=r"^gamma must be at least 0, got -0\.5"):
        fit_linear_models([draw_sample(40, 0)], -0.5, steps=1)
