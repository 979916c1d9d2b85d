import math

import numpy as np
import pytest
import torch

from focalcal.training.adafocal import AdaFocal
from focalcal.training.confidence_bins import equal_mass_gaps
from focalcal.training.recipes import AdaFocalSettings


def logits_of(confidences):
    """Two-class logits whose top probability, for class 0, is each confidence."""
    probs = torch.tensor([[p, 1 - p] for p in confidences], dtype=torch.float64)
    return torch.log(probs)


def test_update_by_hand():
    """Five samples in two equal-mass bins: three in the lower, two in the upper.

    Lower: confidences .6 .7 .8, one correct: gap .7 - 1/3. Upper: .9 .95, both correct: gap -.075.
    """
    state = AdaFocal(AdaFocalSettings(bins=2))
    labels = torch.tensor([0, 0, 1, 1, 0])
    state.update(logits_of([0.9, 0.6, 0.8, 0.7, 0.95]), labels)
    assert state.gammas.tolist() == pytest.approx([math.exp(0.7 - 1 / 3), math.exp(-0.075)], rel=1e-6)
    assert state.edges.tolist() == pytest.approx([0.8], rel=1e-6)


def test_negative_gammas_move_the_other_way():
    """Overconfidence (gap > 0) raises gamma: -1 exp(-gap) is nearer to 0, then positive."""
    state = AdaFocal(AdaFocalSettings(bins=1))
    state.gammas = torch.tensor([-1.0])
    state.update(logits_of([0.9, 0.9]), torch.tensor([0, 1]))
    assert state.gammas.item() == pytest.approx(-math.exp(-0.4), rel=1e-6)


@pytest.mark.parametrize(("before", "correct", "after"), [(0.21, True, -0.2), (-0.21, False, 0.2)])
def test_small_gammas_change_sign(before, correct, after):
    """gap -.1 takes .21 to .19; gap +.9 takes -.21 to -.085: both within 0.2 of zero."""
    state = AdaFocal(AdaFocalSettings(bins=1))
    state.gammas = torch.tensor([before])
    state.update(logits_of([0.9]), torch.tensor([0 if correct else 1]))
    assert state.gammas.item() == pytest.approx(after)


def test_fewer_samples_than_bins_leave_the_empty_bins_alone():
    state = AdaFocal(AdaFocalSettings(bins=3))
    state.update(logits_of([0.9]), torch.tensor([1]))
    assert state.gammas.tolist() == pytest.approx([math.exp(0.9), 1.0, 1.0], rel=1e-6)
    assert torch.isfinite(state.edges).all()


def test_bins_are_those_of_array_split():
    generator = np.random.default_rng(0)
    confidence = generator.uniform(0.1, 1, 103)
    correct = generator.uniform(size=103) < confidence
    gaps, edges, sizes = equal_mass_gaps(torch.tensor(confidence), torch.tensor(correct), 15)
    parts = np.array_split(np.argsort(confidence, kind="stable"), 15)
    assert sizes.tolist() == [len(part) for part in parts]
    expected = [confidence[part].mean() - correct[part].mean() for part in parts]
    np.testing.assert_allclose(gaps, expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(edges, [confidence[part].max() for part in parts[:-1]])


def test_lookup_uses_bins_open_below():
    state = AdaFocal(AdaFocalSettings(bins=3))
    state.edges, state.gammas = torch.tensor([0.3, 0.6]), torch.tensor([1.0, 2.0, 3.0])
    looked_up = state.lookup(torch.tensor([0.0, 0.3, 0.31, 0.6, 0.61, 1.0]))
    assert looked_up.tolist() == [1, 1, 2, 2, 3, 3]
