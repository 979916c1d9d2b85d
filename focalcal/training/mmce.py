"""The maximum mean calibration error of a batch, weighted by correctness (Kumar, Sarawagi and Jain 2018)."""

import torch
from torch import Tensor

from focalcal.training.catalogue import loss
from focalcal.training.losses import LossContext, cross_entropy

KERNEL_WIDTH = 0.4
_SQRT_FLOOR = 1e-10
"""Keeps the gradient of the square root finite at 0."""


@loss(id="mmce", description="cross-entropy + MMCE, weighted, as in its paper")
def mmce(logits: Tensor, labels: Tensor, context: LossContext) -> Tensor:
    """Return CE + w MMCE_w, (n,), so that the sum is N (mean CE + w MMCE_w); w is 2 or 8 (M20 App. D)."""
    penalty = mmce_penalty(logits, labels, variant="paper")
    return cross_entropy(logits, labels, context) + context.mmce_weight * penalty


@loss(id="mmce-authors", description="cross-entropy + MMCE, as in the released code")
def mmce_authors(logits: Tensor, labels: Tensor, context: LossContext) -> Tensor:
    """Return `mmce` with the extra division by squared counts of the released code, (n,)."""
    penalty = mmce_penalty(logits, labels, variant="authors")
    return cross_entropy(logits, labels, context) + context.mmce_weight * penalty


def mmce_penalty(logits: Tensor, labels: Tensor, variant: str = "paper") -> Tensor:
    """Return the weighted MMCE of a batch, a scalar.

    With r the top probability, m correct and n incorrect samples and k(r, r') = exp(-|r - r'| / 0.4),

        MMCE_w^2 = S_cc / m^2 + S_ii / n^2 - 2 S_ci / (m n),

    where S_cc sums (1 - r)(1 - r') k over pairs of correct samples, S_ii sums r r' k over pairs of incorrect
    ones and S_ci sums (1 - r) r' k over mixed pairs. `paper` is this formula; a term without pairs is 0.
    `authors` follows the released code: each S is already a mean over its pairs before the division, and the
    penalty is 0 unless both kinds of samples are present.
    """
    if variant not in {"paper", "authors"}:
        raise ValueError(f"variant must be paper or authors, not {variant!r}")
    confidence, predicted = torch.softmax(logits, dim=1).max(dim=1)
    correct = (predicted == labels).to(confidence)
    count_correct, count_incorrect = correct.sum(), (1 - correct).sum()
    # Signed residuals, 1 - r if correct and -r if not, so that one quadratic form contains all three sums.
    weight = correct / count_correct.clamp(min=1) + (1 - correct) / count_incorrect.clamp(min=1)
    residual = (correct - confidence) * weight
    if variant == "authors":
        residual = residual * weight * (count_correct > 0) * (count_incorrect > 0)
    kernel = torch.exp(-(confidence[:, None] - confidence[None, :]).abs() / KERNEL_WIDTH)
    return torch.sqrt((residual @ kernel @ residual).clamp(min=0) + _SQRT_FLOOR)
