"""Each loss against a scalar float64 formula, autograd's finite differences, and the extremes of float32."""

import math

import pytest
import torch

from focalcal.training import losses
from focalcal.training.adafocal import AdaFocal, adafocal
from focalcal.training.catalogue import LOSSES, parse_loss
from focalcal.training.losses import LossContext
from focalcal.training.mmce import mmce_penalty
from focalcal.training.objective import TrainingObjective
from focalcal.training.recipes import Recipe

RECIPE = Recipe(epochs=350, batch_size=4, learning_rate=0.1)
LOGITS = torch.tensor(
    [[2.0, -1.0, 0.5], [0.1, 0.2, -3.0], [-1.0, 4.0, 0.0], [1.0, 1.2, 0.7], [-6.0, 0.0, 1.0]],
    dtype=torch.float64,
)
LABELS = torch.tensor([0, 1, 2, 0, 0])
ALL_IDS = [
    "ce",
    *("focal-0", "focal-0.5", "focal-1", "focal-3", "focal-7", "focal-2+ls-0.1"),
    *("focal-p0-0.25", "flsd-53", "flsd-532", "flsd-6-0.1-4-0.3-2-0.6-1", "flsd-53-paper", "flsd-532-paper"),
    *("focal-sched-532", "focal-sched-531", "adafocal"),
    *("brier", "mmce", "mmce-authors", "ls-0.05"),
    *(
        "dual-focal-2",
        "dual-focal-0.5",
        "inverse-focal-2",
        "proper-focal-3",
        "proper-focal-0.5",
        "proper-focal-0",
    ),
    *("mdca", "focal-mdca-2", "mbls-1.1", "poly-2", "logitnorm-0.5"),
]
DETACHED_IDS = ["focal-gra-2", "focal-gra-0.5", "focal-gra-0", "bsce-gra"]
"""Losses whose gradient is not that of their values."""
NOT_SCALAR = [name for name in ALL_IDS if name.startswith(("mmce", "mdca", "focal-mdca", "proper"))]
EXTREMES = (0.0, 1.0, -30.0, 100.0, 1e4, -1e30, 3e38, -3e38)


def values(loss_id, logits=LOGITS, labels=LABELS, epoch=0):
    """Return values in the dtype of `logits`, without the objective's cast to float32."""
    objective = TrainingObjective(loss_id, RECIPE)
    objective.start_epoch(epoch)
    return objective.function(logits, labels, objective.context)


def softmax(row):
    top = max(row)
    weights = [math.exp(value - top) for value in row]
    return [weight / sum(weights) for weight in weights]


def scalar_focal(p, gamma):
    return -((1 - p) ** gamma) * math.log(p)


def scalar_loss_after_m20(parsed, row, label, probs):
    p = probs[label]
    if parsed.kind == "mbls":
        return -math.log(p) + 0.1 * sum(max(0.0, max(row) - z - 1.1) for z in row)
    if parsed.kind == "poly":
        return -math.log(p) + 2 * (1 - p)
    if parsed.kind == "logitnorm":
        norm = math.sqrt(sum(z * z for z in row))
        return -math.log(softmax([z / (0.5 * norm) for z in row])[label])
    if parsed.kind == "focal-gra":
        return scalar_focal(p, parsed.gamma)
    assert parsed.kind == "bsce-gra"
    return -math.log(p) * sum((q - (k == label)) ** 2 for k, q in enumerate(probs))


def scalar_loss(loss_id, row, label, epoch=0):  # noqa: PLR0911 (one formula a line)
    """Return the papers' formula for one sample in plain float64."""
    parsed = parse_loss(loss_id)
    probs = softmax(row)
    p = probs[label]
    if parsed.kind.startswith("flsd-53"):
        threshold = 0.19 if parsed.kind.endswith("-paper") else 0.2
        last = 2 if parsed.kind.startswith("flsd-532") and p >= 0.5 else 3
        return scalar_focal(p, 5 if p < threshold else last)
    if parsed.kind == "flsd":
        return scalar_focal(p, 6 if p < 0.1 else 4 if p < 0.3 else 2 if p < 0.6 else 1)
    if parsed.kind in {"focal-sched-532", "focal-sched-531"}:
        last = {"focal-sched-532": 2, "focal-sched-531": 1}[parsed.kind]
        return scalar_focal(p, 5 if epoch < 100 else 3 if epoch < 250 else last)
    if parsed.kind == "brier":
        return sum((q - (k == label)) ** 2 for k, q in enumerate(probs))
    if parsed.kind == "dual-focal":
        below = max((q for q in probs if q < p), default=0.0)
        return -((1 - p + below) ** parsed.gamma) * math.log(p)
    if parsed.kind == "inverse-focal":
        return -((1 + p) ** parsed.gamma) * math.log(p)
    if LOSSES[parsed.kind].module.endswith("after_m20"):
        return scalar_loss_after_m20(parsed, row, label, probs)
    gamma = {"ce": 0.0, "ls": 0.0, "adafocal": 1.0}.get(parsed.kind, parsed.gamma)
    smoothed = [(1 - parsed.epsilon) * (k == label) + parsed.epsilon / len(row) for k in range(len(row))]
    return sum(v * scalar_focal(q, gamma) for v, q in zip(smoothed, probs, strict=True) if v)


@pytest.mark.parametrize("epoch", [0, 99, 100, 249, 250])
@pytest.mark.parametrize("loss_id", [name for name in ALL_IDS + DETACHED_IDS if name not in NOT_SCALAR])
def test_values_match_the_scalar_formula(loss_id, epoch):
    expected = [
        scalar_loss(loss_id, row, y, epoch) for row, y in zip(LOGITS.tolist(), LABELS.tolist(), strict=True)
    ]
    assert values(loss_id, epoch=epoch).tolist() == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("loss_id", ALL_IDS)
def test_gradients_match_finite_differences(loss_id):
    logits = LOGITS.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda z: values(loss_id, z), logits, atol=1e-7)


@pytest.mark.parametrize(
    "loss_id",
    [
        *("focal-0", "dual-focal-0", "inverse-focal-0", "proper-focal-0", "ls-0"),
        *("poly-0", "focal-gra-0", "mbls-100"),
    ],
)
def test_gamma_or_epsilon_zero_is_cross_entropy(loss_id):
    expected = torch.nn.functional.cross_entropy(LOGITS, LABELS, reduction="none")
    torch.testing.assert_close(values(loss_id), expected, rtol=1e-14, atol=0)


@pytest.mark.parametrize("loss_id", ALL_IDS + DETACHED_IDS)
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_float32_is_finite_for_every_finite_logit(loss_id, classes):
    rows = [[a, b] + [0.0] * (classes - 2) for a in EXTREMES for b in EXTREMES]
    logits = torch.tensor(rows, dtype=torch.float32).repeat_interleave(2, dim=0).requires_grad_()
    labels = torch.tensor([0, 1]).repeat(len(rows))
    result = TrainingObjective(loss_id, RECIPE).values(logits, labels)
    (gradient,) = torch.autograd.grad(result, logits, torch.ones_like(result))
    assert torch.isfinite(result).all()
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("gap", [5.0, 20.0, 60.0, 95.0])
@pytest.mark.parametrize("gamma", [0.3, 1, 2])
def test_saturated_float32_gradient_keeps_its_digits(gap, gamma):
    """At p -> 1, dL/dz_true -> -(1 + gamma)(1-p)^(gamma+1); a naive implementation returns 0 or NaN."""
    logits = torch.tensor([[gap, 0.0]], requires_grad=True)
    losses.focal(logits, torch.tensor([0]), LossContext(gamma=gamma)).sum().backward()
    rest = 1 / (1 + math.exp(gap))
    log_p = math.log1p(-rest)
    slope = rest**gamma * (1 - gamma * (1 - rest) * log_p / rest)
    assert logits.grad[0, 0].item() == pytest.approx(-slope * rest, rel=2e-5, abs=1e-44)


@pytest.mark.parametrize("scale", [0.0, 0.01, 0.3, 3.0])
@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("gamma", [0.5, 1, 3, 7, 19.5])
def test_proper_focal_composed_with_psi_is_the_focal_loss(gamma, classes, scale):
    """L*(Psi(u)) = focal(u), with Psi written out by C21 Eq. 11."""
    generator = torch.Generator().manual_seed(0)
    u = torch.softmax(scale * torch.randn(40, classes, generator=generator, dtype=torch.float64), dim=1)
    phi = (1 - u) ** gamma - gamma * (1 - u) ** (gamma - 1) * u * torch.log(u)
    labels = torch.arange(40) % classes
    proper = values(f"proper-focal-{gamma:g}", torch.log(u / phi), labels)
    torch.testing.assert_close(
        proper, values(f"focal-{gamma:g}", torch.log(u), labels), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize(
    ("loss_id", "is_proper"), [("ce", True), ("proper-focal-3", True), ("brier", True), ("focal-3", False)]
)
def test_expected_loss_is_stationary_at_the_posterior_of_a_proper_loss(loss_id, is_proper):
    posterior = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)
    logits = torch.log(posterior).expand(3, 3).clone().requires_grad_()
    (values(loss_id, logits, torch.arange(3)) * posterior).sum().backward()
    total = logits.grad.sum(dim=0).abs().max().item()
    assert (total < 1e-12) if is_proper else (total > 1e-2)


@pytest.mark.parametrize("loss_id", DETACHED_IDS)
def test_a_detached_weight_scales_the_gradient_of_cross_entropy(loss_id):
    logits = LOGITS.clone().requires_grad_()
    (found,) = torch.autograd.grad(values(loss_id, logits).sum(), logits)
    plain = torch.nn.functional.cross_entropy(logits, LABELS, reduction="none")
    (expected,) = torch.autograd.grad(plain.sum(), logits)
    weight = [
        scalar_loss(loss_id, row, y) / scalar_loss("ce", row, y)
        for row, y in zip(LOGITS.tolist(), LABELS.tolist(), strict=True)
    ]
    torch.testing.assert_close(found, expected * torch.tensor(weight)[:, None].double(), rtol=1e-6, atol=0)


@pytest.mark.parametrize(("loss_id", "base"), [("mdca", "ce"), ("focal-mdca-2", "focal-2")])
def test_mdca_by_hand(loss_id, base):
    """Mean probabilities 0.7 and 0.3, shares of labels 1/3 and 2/3."""
    probs = torch.tensor([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2]], dtype=torch.float64)
    labels = torch.tensor([0, 1, 1])
    penalty = (abs(0.7 - 1 / 3) + abs(0.3 - 2 / 3)) / 2
    expected = values(base, torch.log(probs), labels) + penalty
    torch.testing.assert_close(values(loss_id, torch.log(probs), labels), expected, rtol=1e-13, atol=0)


def test_logitnorm_ignores_the_scale_of_the_logits_and_is_smooth_at_zero():
    torch.testing.assert_close(values("logitnorm-0.04", 1e6 * LOGITS), values("logitnorm-0.04"))
    zero = torch.zeros(1, 4, dtype=torch.float64, requires_grad=True)
    value = values("logitnorm-0.04", zero, torch.tensor([0]))
    assert value.item() == pytest.approx(math.log(4), rel=1e-14)
    (gradient,) = torch.autograd.grad(value, zero)
    assert gradient[0].tolist() == pytest.approx([-0.75 / 4e-9, *[0.25 / 4e-9] * 3], rel=1e-12)


def test_focal_p0_has_the_gradient_of_cross_entropy_at_p0():
    gradients = []
    for loss_id in ("focal-p0-0.2", "ce"):
        logits = torch.log(torch.tensor([[0.2, 0.5, 0.3]], dtype=torch.float64)).requires_grad_()
        gradients.append(torch.autograd.grad(values(loss_id, logits, torch.tensor([0])), logits)[0])
    torch.testing.assert_close(*gradients, rtol=1e-13, atol=0)


def test_adafocal_uses_the_gamma_of_the_bin_of_the_true_class():
    state = AdaFocal()
    state.edges = torch.tensor([0.3, 0.6])
    state.gammas = torch.tensor([4.0, -1.5, 0.5])
    probs = torch.tensor([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]], dtype=torch.float64)
    result = adafocal(torch.log(probs), torch.zeros(3, dtype=torch.int64), LossContext(state=state))
    expected = [scalar_focal(0.2, 4), -(1.5**1.5) * math.log(0.5), scalar_focal(0.9, 0.5)]
    assert result.tolist() == pytest.approx(expected, rel=1e-6)


def _mmce_by_hand(variant):
    """Two correct (0.9, 0.6) and one incorrect (0.8) sample, summed pair by pair."""
    correct, incorrect = [0.9, 0.6], [0.8]

    def kernel(a, b):
        return math.exp(-abs(a - b) / 0.4)

    both = sum((1 - a) * (1 - b) * kernel(a, b) for a in correct for b in correct)
    neither = sum(a * b * kernel(a, b) for a in incorrect for b in incorrect)
    mixed = sum((1 - a) * b * kernel(a, b) for a in correct for b in incorrect)
    m, n = len(correct), len(incorrect)
    if variant == "paper":
        return math.sqrt(both / m**2 + neither / n**2 - 2 * mixed / (m * n))
    return math.sqrt(both / m**4 + neither / n**4 - 2 * mixed / (m * n) ** 2)


@pytest.mark.parametrize(("loss_id", "variant"), [("mmce", "paper"), ("mmce-authors", "authors")])
def test_mmce_by_hand(loss_id, variant):
    probs = torch.tensor([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2]], dtype=torch.float64)
    labels = torch.tensor([0, 1, 1])
    cross_entropy = -(math.log(0.9) + math.log(0.6) + math.log(0.2))
    total = values(loss_id, torch.log(probs), labels).sum().item()
    assert total == pytest.approx(cross_entropy + 3 * 2 * _mmce_by_hand(variant), rel=1e-8)


def test_mmce_of_one_kind_of_samples():
    """All correct: the paper's sum over correct pairs remains; the released code returns 0."""
    logits = torch.log(torch.tensor([[0.9, 0.1], [0.9, 0.1]], dtype=torch.float64))
    labels = torch.tensor([0, 0])
    assert mmce_penalty(logits, labels, "paper").item() == pytest.approx(0.1, rel=1e-6)
    assert mmce_penalty(logits, labels, "authors").item() == pytest.approx(0.0, abs=1.1e-5)
    with pytest.raises(ValueError, match="variant must be paper or authors, not 'other'"):
        mmce_penalty(logits, labels, "other")


def test_reduction_is_the_recipes_except_for_brier_which_is_a_mean():
    recipe = Recipe(epochs=1, batch_size=1, learning_rate=1.0, reduction="sum")
    sample_losses = torch.tensor([1.0, 2.0, 6.0])
    assert TrainingObjective("ce", recipe).reduce(sample_losses).item() == 9.0
    assert TrainingObjective("brier", recipe).reduce(sample_losses).item() == 3.0
    assert TrainingObjective("ce", RECIPE).reduce(sample_losses).item() == 3.0


def test_the_ids_tested_here_cover_every_family():
    assert {parse_loss(loss_id).kind for loss_id in ALL_IDS + DETACHED_IDS} == set(LOSSES)


def test_the_threshold_of_m20s_text_and_that_of_its_code():
    p = 0.195
    logits = torch.tensor([[math.log(p / (1 - p)), 0.0], [0.0, 0.0]], dtype=torch.float64)
    labels = torch.tensor([0, 0])
    code, text, stepped = (
        values(name, logits, labels).tolist() for name in ("flsd-53", "flsd-53-paper", "flsd-532-paper")
    )
    assert code == pytest.approx([scalar_focal(p, 5), scalar_focal(0.5, 3)])
    assert text == pytest.approx([scalar_focal(p, 3), scalar_focal(0.5, 3)])
    assert stepped == pytest.approx([scalar_focal(p, 3), scalar_focal(0.5, 2)])
