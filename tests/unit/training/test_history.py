import math

import pytest
import torch

from focalcal.training.history import (
    EpochRecorder,
    GradientNormProbe,
    snapshot_bins,
    split_metrics,
)

PROBS = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.3, 0.7]], dtype=torch.float64)
LABELS = torch.tensor([0, 1, 0, 1])


def entropy(p):
    return -p * math.log(p) - (1 - p) * math.log(1 - p)


def test_metrics_by_hand():
    metrics = split_metrics("val", torch.log(PROBS), LABELS, torch.tensor([1.0, 2.0, 3.0, 6.0]))
    correct = [0.9, 0.8, 0.7]
    assert metrics["val_loss"] == pytest.approx(3.0)
    assert metrics["val_error"] == pytest.approx(0.25)
    assert metrics["val_nll_correct"] == pytest.approx(-sum(map(math.log, correct)) / 3)
    assert metrics["val_nll_incorrect"] == pytest.approx(-math.log(0.4))
    assert metrics["val_nll"] == pytest.approx(-sum(map(math.log, [*correct, 0.4])) / 4)
    assert metrics["val_entropy_correct"] == pytest.approx(sum(map(entropy, correct)) / 3)
    assert metrics["val_entropy_incorrect"] == pytest.approx(entropy(0.6))
    assert metrics["val_p_true"] == pytest.approx(sum([*correct, 0.4]) / 4)
    assert metrics["val_p_true_incorrect"] == pytest.approx(0.4)
    # One sample in each bin: |conf - correct| = .1, .6, .2, .3.
    assert metrics["val_ece"] == pytest.approx(1.2 / 4)
    assert metrics["val_adaece"] == pytest.approx(1.2 / 4)


def test_ece_bins_are_closed_above():
    """Confidence 0.8 = 12/15 belongs to the bin (11/15, 12/15], with 0.75 below it."""
    probs = torch.tensor([[0.8, 0.2], [0.75, 0.25]], dtype=torch.float64)
    labels = torch.tensor([0, 1])
    metrics = split_metrics("val", torch.log(probs), labels, torch.zeros(2))
    assert metrics["val_ece"] == pytest.approx(abs(1.55 - 1) / 2)


def test_saturated_logits_have_finite_metrics():
    metrics = split_metrics(
        "val", torch.tensor([[1e4, 0.0], [0.0, 1e4]]), torch.tensor([0, 0]), torch.zeros(2)
    )
    assert metrics["val_entropy"] == 0
    assert metrics["val_nll"] == pytest.approx(5e3)


def test_reliability_bins():
    bins = snapshot_bins(torch.log(PROBS), LABELS, bins=5)
    assert bins["count"] == [0, 0, 1, 2, 1]
    assert bins["confidence"] == pytest.approx([0, 0, 0.6, 0.75, 0.9])
    assert bins["accuracy"] == pytest.approx([0, 0, 0, 1, 1])


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_gradient_norms_equal_those_of_single_samples(reduction):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3))
    probe = GradientNormProbe(model[2])
    inputs, labels = torch.randn(5, 4), torch.tensor([0, 1, 2, 0, 1])
    logits = model(inputs)
    logits.retain_grad()
    torch.nn.functional.cross_entropy(logits, labels, reduction=reduction).backward()
    norms = probe.norms(logits.grad, 5 if reduction == "mean" else 1)
    for index in range(5):
        model.zero_grad()
        torch.nn.functional.cross_entropy(
            model(inputs[index : index + 1]), labels[index : index + 1]
        ).backward()
        assert norms[index].item() == pytest.approx(model[2].weight.grad.norm().item(), rel=1e-5)


def test_recorder_finds_the_first_bad_sample_and_survives_a_round_trip():
    recorder = EpochRecorder(6, 2, torch.device("cpu"))
    recorder.add(torch.ones(2, 2), torch.tensor([0, 1]), torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    assert recorder.first_divergence(0) is None
    other = EpochRecorder(6, 2, torch.device("cpu"))
    other.load_state(recorder.state())
    assert other.count == 2
    other.add(torch.ones(2, 2), torch.tensor([0, 1]), torch.tensor([1.0, math.nan]), None)
    assert (other.first_divergence(0), other.first_divergence(2), other.first_divergence(4)) == (3, 3, None)
    assert other.norms[:2].tolist() == [3, 4]
    assert other.norms[2:].isnan().all(), "not measured is not zero"
