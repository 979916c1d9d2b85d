"""The proper part of focal loss: hand values, properness, convexity, confidence, order."""

import math

import numpy as np
import pytest

from focalcal.theory.proper import (
    conditional_risk,
    confidence_gain,
    focal_curvature,
    focal_loss,
    keeps_order,
    proper_conditional_risk,
    proper_loss,
    properness_margin,
)
from focalcal.theory.psi import psi, psi_inverse


def test_focal_loss_by_hand():
    assert focal_loss(0.5, 2.0) == pytest.approx(0.25 * math.log(2), abs=1e-16)
    assert focal_loss([0.0, 1.0], 0.5).tolist() == [math.inf, 0.0]
    assert focal_loss(1.0, -1.0) == 1.0
    assert focal_loss(1 - 1e-9, -1.0) == pytest.approx(1.0, abs=1e-6)


def test_risks_by_hand():
    posterior, q = [[0.7, 0.3]], [[0.6, 0.4]]
    expected = -0.7 * 0.4 * math.log(0.6) - 0.3 * 0.6 * math.log(0.4)
    assert conditional_risk(q, posterior, 1.0)[0] == pytest.approx(expected, abs=1e-15)
    inner = psi_inverse(q, 1.0)[0]
    expected = -0.7 * (1 - inner[0]) * math.log(inner[0]) - 0.3 * (1 - inner[1]) * math.log(inner[1])
    assert proper_conditional_risk(q, posterior, 1.0)[0] == pytest.approx(expected, abs=1e-15)
    assert proper_loss(psi(q, 3.0), 3.0) == pytest.approx(focal_loss(q, 3.0), rel=1e-12)


def test_a_class_without_probability_counts_nothing():
    assert conditional_risk([[1.0, 0.0]], [[1.0, 0.0]], 2.0)[0] == 0.0
    assert conditional_risk([[1.0, 0.0]], [[0.5, 0.5]], 2.0)[0] == math.inf


@pytest.mark.parametrize("gamma", [-0.5, 0.5, 2.0, 7.0])
@pytest.mark.parametrize("classes", [2, 3, 6])
def test_proper_part_is_proper(gamma, classes):
    generator = np.random.default_rng(classes)
    posterior, other = generator.dirichlet(np.ones(classes), 200), generator.dirichlet(np.ones(classes), 200)
    margins = properness_margin(other, posterior, gamma)
    assert (margins > 0).all()
    assert properness_margin(posterior, posterior, gamma) == pytest.approx(0.0, abs=1e-15)
    # focal loss itself is not: its minimiser has a lower risk than the truth
    focal = conditional_risk(posterior, posterior, gamma)
    assert (conditional_risk(psi_inverse(posterior, gamma), posterior, gamma) < focal).all()


@pytest.mark.parametrize("gamma", [0.0, 0.3, 1.0, 2.5, 8.0])
def test_curvature_is_positive_and_the_second_derivative(gamma):
    p = np.linspace(0.02, 0.98, 49)
    assert (focal_curvature(p, gamma) > 0).all()
    step = 1e-4
    numeric = (focal_loss(p + step, gamma) - 2 * focal_loss(p, gamma) + focal_loss(p - step, gamma)) / step**2
    assert focal_curvature(p, gamma) == pytest.approx(numeric, rel=2e-3, abs=1e-6)


def test_confidence_is_raised_up_to_three_classes_only():
    generator = np.random.default_rng(0)
    for classes in (2, 3):
        q = generator.dirichlet(np.ones(classes), 3000)
        assert min(confidence_gain(q, gamma).min() for gamma in (0.02, 0.5, 2.0, 9.0)) > -1e-15
    # K24 Prop. 5 fails from four classes on
    assert confidence_gain([[0.32, 0.32, 0.32, 0.04]], 0.25)[0] < -5e-5
    assert confidence_gain([[0.05] + [0.95 / 199] * 199], 2.0)[0] < -5e-3


@pytest.mark.parametrize("gamma", [-1.0, -0.9, -0.5, -0.1, 0.0, 1.0, 10.0])
def test_order_is_kept_for_negative_gamma_too(gamma):
    generator = np.random.default_rng(1)
    for classes in (2, 3, 5, 20):
        for flatness in (0.1, 1.0, 20.0):
            assert keeps_order(generator.dirichlet(np.full(classes, flatness), 500) + 0.0, gamma).all()


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"^p must lie in \[0, 1\], got 2\.0"):
        focal_loss(2.0, 1.0)
    with pytest.raises(ValueError, match=r"^posterior has row 0 whose sum is"):
        conditional_risk([[0.5, 0.5]], [[0.5, 0.6]], 1.0)
    with pytest.raises(ValueError, match=r"^q\[\d, \d\] is -.*; allowed: 0 to 1"):
        confidence_gain([[1.5, -0.5]], 1.0)
