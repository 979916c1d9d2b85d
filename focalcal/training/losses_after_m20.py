"""Losses that papers after M20 compare focal loss with; the same conventions as in `losses`.

Each follows its paper's text. Where the released code differs, the docstring says so.
"""

import torch
from torch import Tensor

from focalcal.training.catalogue import loss
from focalcal.training.losses import LossContext, cross_entropy, focal, true_class_loss

MBLS_WEIGHT = 0.1
MDCA_WEIGHT = 1.0
SMALLEST_NORM = 1e-7
"""Logits with a smaller norm are divided by this instead, so that LogitNorm has finite gradients at 0."""


@loss(id="mdca", description="cross-entropy + MDCA")
@loss(id="focal-mdca", description="focal loss + MDCA", number="gamma")
def mdca(logits: Tensor, labels: Tensor, context: LossContext) -> Tensor:
    """Return cross-entropy or focal loss + MDCA, (n,) (Hebbalaguppe et al. 2022, Sec. 4).

    MDCA = 1/K sum_k |mean of p_k - share of labels k|, over the batch. The paper leaves the classification
    loss and the weight open; 1 is the weight in the commands of its released code.
    """
    gap = torch.softmax(logits, dim=1).mean(dim=0) - _label_shares(labels, logits)
    base = cross_entropy if context.gamma is None else focal
    return base(logits, labels, context) + MDCA_WEIGHT * gap.abs().mean()


@loss(
    id="mbls",
    description="cross-entropy + 0.1 times what logit distances exceed a margin by",
    number="margin",
)
def mbls(logits: Tensor, labels: Tensor, context: LossContext) -> Tensor:
    """Return cross-entropy + 0.1 sum_k max(0, max_j z_j - z_k - margin), (n,) (Liu et al. 2022, Sec. 3).

    The released code takes the mean over classes in place of the sum. The paper's margins are 6 and 10.
    """
    # Scaled before the difference, which may overflow otherwise.
    scaled = MBLS_WEIGHT * logits
    excess = scaled.amax(dim=1, keepdim=True) - scaled - MBLS_WEIGHT * context.number
    values = cross_entropy(logits, labels, context) + excess.clamp(min=0).sum(dim=1)
    return values.clamp(max=torch.finfo(values.dtype).max)


@loss(id="poly", description="cross-entropy + epsilon (1 - p_true)", number="epsilon")
def poly(logits: Tensor, labels: Tensor, context: LossContext) -> Tensor:
    """Return Poly-1, -log p_true + epsilon (1 - p_true), (n,) (Leng et al. 2022, Sec. 4)."""
    return true_class_loss(logits, labels, _poly_terms, context.number)


@loss(
    id="logitnorm",
    description="cross-entropy of the logits divided by temperature times their norm",
    number="temperature",
    bounds=(0.001, 1000.0),
)
def logitnorm(logits: Tensor, labels: Tensor, context: LossContext) -> Tensor:
    """Return the cross-entropy of logits / (temperature ||logits||), (n,) (Wei et al. 2022, Sec. 3).

    The network predicts the softmax of the logits themselves. The paper's temperature for CIFAR is 0.04.
    """
    # The direction does not depend on the scale, which keeps the squares in the norm from overflowing.
    scale = logits.detach().abs().amax(dim=1, keepdim=True).clamp(min=SMALLEST_NORM)
    unit = logits / scale
    norm = torch.linalg.vector_norm(unit, dim=1, keepdim=True).clamp(min=1.0)
    return cross_entropy(unit / (context.number * norm), labels, context)


@loss(id="focal-gra", description="cross-entropy, gradient weighted by (1 - p_true)^gamma", number="gamma")
def focal_gra(logits: Tensor, labels: Tensor, context: LossContext) -> Tensor:
    """Return the values of focal loss, (n,); no gradient flows through the weight (Lin et al. 2025).

    FL-GRA of arXiv:2503.22725: the gradient is (1 - p_true)^gamma times that of cross-entropy.
    """
    return true_class_loss(logits, labels, _detached_focal_terms, context.gamma)


@loss(id="bsce-gra", description="cross-entropy, gradient weighted by the Brier score")
def bsce_gra(logits: Tensor, labels: Tensor, _context: LossContext) -> Tensor:
    """Return cross-entropy times the sample's Brier score, (n,); no gradient flows through the latter.

    BSCE-GRA of Lin et al. 2025, arXiv:2503.22725, with the Brier score itself as the weight; its released
    code also has other norms and powers of p - y.
    """
    with torch.no_grad():
        probs = torch.softmax(logits, dim=1)
        label_probability = probs.gather(1, labels[:, None])[:, 0]
        # |p - y|^2 = |p|^2 - 2 p_true + 1
        weight = (probs.square().sum(dim=1) - 2 * label_probability + 1).clamp(min=0)
    return true_class_loss(logits, labels, _weighted_terms, weight)


def _label_shares(labels: Tensor, logits: Tensor) -> Tensor:
    """Return the share of each class among the labels, (K,)."""
    return torch.nn.functional.one_hot(labels, logits.shape[1]).to(logits.dtype).mean(dim=0)


def _poly_terms(log_p: Tensor, rest: Tensor, _log_rest: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    return -log_p + epsilon * rest, -1 - epsilon * (1 - rest)


def _detached_focal_terms(
    log_p: Tensor, _rest: Tensor, log_rest: Tensor, gamma: float
) -> tuple[Tensor, Tensor]:
    return _weighted_terms(log_p, log_p, log_rest, torch.exp(gamma * log_rest))


def _weighted_terms(log_p: Tensor, _rest: Tensor, _log_rest: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weighted loss, which may overflow as a Brier score may be 2, and its derivative."""
    largest = torch.finfo(log_p.dtype).max
    return (-weight * log_p).clamp(max=largest), -weight
