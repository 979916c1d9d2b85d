"""The losses that most runs use, and what all losses share; other files of this folder have further ones.

A loss is one value per sample from logits and labels; the recipe chooses sum or mean.
Each public loss takes float logits (n, K), int64 labels (n,) and the `LossContext` of the run, and returns
(n,) values. All are vectorised and have finite values and gradients for every finite float32 logit: they work
on log-softmax, take log(1 - p) from the log-sum-exp of the *other* classes, and give the gradients of the
focal family in closed form, which stays finite where autograd multiplies 0 by infinity (p = 1, gamma < 1).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from focalcal.training.catalogue import loss

_SERIES_BELOW = 1e-4
"""Below this 1 - p, the two-term series of p log(p) / (1 - p) is exact to float32 rounding."""
_LOG_FLOOR = -1e30
"""Log-probabilities that autograd multiplies are cut here, far enough from overflow for any gamma."""


@dataclass
class LossContext:
    """Parameters and state of a loss besides logits and labels."""

    number: float | None = None
    """The number in the loss id; the family says what it means."""
    gamma: float | None = None
    epsilon: float = 0.0
    """Label smoothing."""
    gammas: tuple[float, ...] = ()
    """Gammas of the stages of a sample-dependent or scheduled loss."""
    thresholds: tuple[float, ...] = ()
    """True-class probabilities at which a sample-dependent gamma changes (M20: 0.19; its code: 0.2)."""
    milestones: tuple[int, ...] = (100, 250)
    """Epochs (counted from 0) at which a scheduled gamma changes (M20)."""
    mmce_weight: float = 2.0
    """Factor of MMCE beside cross-entropy."""
    epoch: int = 0
    state: Any = None
    """What an adaptive loss keeps and changes at the end of each epoch; its file defines it."""


LossFunction = Callable[[Tensor, Tensor, LossContext], Tensor]
Terms = Callable[..., tuple[Tensor, Tensor]]


@loss(id="ce", description="cross-entropy", risk_gamma=0.0)
def cross_entropy(logits: Tensor, labels: Tensor, _context: LossContext) -> Tensor:
    """Return -log p_true, (n,)."""
    return true_class_loss(logits, labels, _cross_entropy_terms, 0.0)


@loss(id="focal", description="focal loss with a fixed gamma", number="gamma", is_focal=True, smoothable=True)
@loss(
    id="focal-p0",
    description="focal loss whose gradient equals cross-entropy's at probability p0 (M20 Prop. 2)",
    number="p0",
    bounds=(0.05, 0.5),
    is_focal=True,
)
def focal(logits: Tensor, labels: Tensor, context: LossContext) -> Tensor:
    """Return the focal loss -sum_k v_k (1 - p_k)^gamma log p_k, (n,) (C21 Eq. 5).

    v is one-hot, or smoothed: 1 - epsilon on the label plus epsilon / K on every class.
    """
    if context.epsilon:
        return _SmoothedFocal.apply(logits, labels, context.gamma, context.epsilon)
    return _focal(logits, labels, context.gamma)


@loss(id="flsd-53", description="M20: gamma 5 for p < 0.2, else 3", gammas=(5.0, 3.0), thresholds=(0.2,))
@loss(
    id="flsd-532",
    description="M20: gamma 5 for p < 0.2, 3 for p < 0.5, else 2",
    gammas=(5.0, 3.0, 2.0),
    thresholds=(0.2, 0.5),
)
@loss(id="flsd", description="M20 with any gammas and the probabilities between them", has_steps=True)
def focal_sample_dependent(logits: Tensor, labels: Tensor, context: LossContext) -> Tensor:
    """Return the focal loss whose gamma falls as p_true passes the thresholds, (n,) (M20 section 5)."""
    probability = true_class_probability(logits, labels)
    gamma = torch.full_like(probability, context.gammas[0])
    for threshold, value in zip(context.thresholds, context.gammas[1:], strict=True):
        gamma = torch.where(probability < threshold, gamma, value)
    return true_class_loss(logits, labels, focal_terms, gamma)


@loss(id="focal-sched-532", description="M20: gamma 5, then 3, then 2", gammas=(5.0, 3.0, 2.0))
@loss(id="focal-sched-531", description="M20: gamma 5, then 3, then 1", gammas=(5.0, 3.0, 1.0))
def focal_scheduled(logits: Tensor, labels: Tensor, context: LossContext) -> Tensor:
    """Return the focal loss with the gamma of the epoch's stage, (n,) (M20 section 5)."""
    return _focal(logits, labels, scheduled_gamma(context))


def scheduled_gamma(context: LossContext) -> float:
    """Return the gamma of the stage that contains `context.epoch`."""
    return context.gammas[sum(context.epoch >= milestone for milestone in context.milestones)]


@loss(id="brier", description="squared error of the probabilities", risk_gamma=0.0, reduction="mean")
def brier_loss(logits: Tensor, labels: Tensor, _context: LossContext) -> Tensor:
    """Return sum_k (p_k - [k = label])^2, (n,)."""
    probs = torch.softmax(logits, dim=1)
    return (probs - torch.nn.functional.one_hot(labels, logits.shape[1])).square().sum(dim=1)


@loss(
    id="ls",
    description="cross-entropy on smoothed labels",
    number="epsilon",
    bounds=(0.0, 1.0),
    risk_gamma=0.0,
)
def label_smoothing(logits: Tensor, labels: Tensor, context: LossContext) -> Tensor:
    """Return the cross-entropy to (1 - epsilon) one-hot + epsilon / K, (n,)."""
    return _SmoothedFocal.apply(logits, labels, 0.0, context.epsilon)


@loss(id="dual-focal", description="weight (1 - p_true + p_next)^gamma", number="gamma")
def dual_focal(logits: Tensor, labels: Tensor, context: LossContext) -> Tensor:
    """Return -(1 - p_true + p_next)^gamma log p_true, (n,) (Tao, Dong and Xu 2023).

    p_next is the largest probability strictly below p_true, or 0 if there is none.
    """
    log_probs = torch.log_softmax(logits, dim=1).clamp(min=_LOG_FLOOR)
    index = labels[:, None]
    log_true = log_probs.gather(1, index)
    log_next = log_probs.masked_fill(log_probs >= log_true, -torch.inf).amax(dim=1)
    log_rest = log_probs.scatter(1, index, -torch.inf).logsumexp(dim=1)
    # If no class ranks below the label, log_next is -inf: a finite floor keeps its gradient 0, not NaN.
    log_weight = torch.logaddexp(log_rest, log_next.clamp(min=_LOG_FLOOR))
    return -torch.exp(context.gamma * log_weight) * log_true[:, 0]


@loss(id="inverse-focal", description="weight (1 + p_true)^gamma", number="gamma")
def inverse_focal(logits: Tensor, labels: Tensor, context: LossContext) -> Tensor:
    """Return -(1 + p_true)^gamma log p_true, (n,) (Wang, Feng and Zhang 2021)."""
    return true_class_loss(logits, labels, inverse_focal_terms, context.gamma)


def true_class_loss(logits: Tensor, labels: Tensor, terms: Terms, parameter: Tensor | float = 0.0) -> Tensor:
    """Return a loss f(log p_true), (n,), of which `terms` gives the value and the derivative.

    The derivative is with respect to log p_true. `terms` is called with log p, 1 - p and log(1 - p) of the
    true class, all finite, and the parameter.
    """
    return _TrueClassLoss.apply(logits, labels, terms, parameter)


def true_class_probability(logits: Tensor, labels: Tensor) -> Tensor:
    """Return p_true, (n,), detached: it selects gammas, and no gradient flows through it."""
    with torch.no_grad():
        return torch.softmax(logits, dim=1).gather(1, labels[:, None])[:, 0]


def _focal(logits: Tensor, labels: Tensor, gamma: float) -> Tensor:
    """Return the focal loss with one gamma; gamma 0 takes the cheaper path of cross-entropy."""
    terms = focal_terms if gamma else _cross_entropy_terms
    return true_class_loss(logits, labels, terms, gamma)


def _cross_entropy_terms(
    log_p: Tensor, _rest: Tensor, _log_rest: Tensor, _gamma: float
) -> tuple[Tensor, Tensor]:
    return -log_p, torch.full_like(log_p, -1.0)


def focal_terms(
    log_p: Tensor, rest: Tensor, log_rest: Tensor, gamma: Tensor | float
) -> tuple[Tensor, Tensor]:
    """Return the focal loss and its derivative with respect to log p, (1-p)^g (-1 + g p log p / (1-p))."""
    weight = torch.exp(gamma * log_rest)
    return -weight * log_p, -weight * (1 + gamma * _entropy_ratio(log_p, rest))


def inverse_focal_terms(
    log_p: Tensor, rest: Tensor, _log_rest: Tensor, gamma: Tensor | float
) -> tuple[Tensor, Tensor]:
    """Return -(1+p)^g log p and its derivative with respect to log p."""
    p = 1 - rest
    weight = torch.exp(gamma * torch.log1p(p))
    return -weight * log_p, -weight * (1 + gamma * p * log_p / (1 + p))


def _entropy_ratio(log_p: Tensor, rest: Tensor) -> Tensor:
    """Return -p log(p) / (1 - p), which rises from 0 at p = 0 to 1 at p = 1, from log p and 1 - p."""
    far = rest >= _SERIES_BELOW
    safe_rest = torch.where(far, rest, 1.0)
    return torch.where(far, -torch.exp(log_p) * log_p / safe_rest, 1 - rest / 2)


class _TrueClassLoss(torch.autograd.Function):
    """A loss f(log p_true), whose gradient with respect to logit k is f' ([k = label] - p_k)."""

    @staticmethod
    def forward(ctx, logits, labels, terms, gamma):
        log_probs = torch.log_softmax(logits, dim=1)
        index = labels[:, None]
        log_p = log_probs.gather(1, index)[:, 0]
        log_rest = log_probs.scatter(1, index, -torch.inf).logsumexp(dim=1)
        floor = torch.finfo(logits.dtype).min
        log_p, log_rest = log_p.clamp(min=floor), log_rest.clamp(min=floor, max=0)
        rest = torch.exp(log_rest)
        value, slope = terms(log_p, rest, log_rest, gamma)
        ctx.save_for_backward(log_probs, index, rest, slope)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx, upstream):
        log_probs, index, rest, slope = ctx.saved_tensors
        scale = (upstream * slope)[:, None]
        gradient = torch.exp(log_probs).mul_(-scale)
        # 1 - p of the label comes from `rest`, which stays accurate where p rounds to 1.
        return gradient.scatter_(1, index, scale * rest[:, None]), None, None, None


class _SmoothedFocal(torch.autograd.Function):
    """Focal loss on smoothed labels, (n,): the sum over classes of v_k f(log p_k)."""

    @staticmethod
    def forward(ctx, logits, labels, gamma, epsilon):
        log_probs = torch.log_softmax(logits, dim=1).clamp(min=torch.finfo(logits.dtype).min)
        log_rest = log_complement(log_probs)
        classes = logits.shape[1]
        target = torch.full_like(log_probs, epsilon / classes)
        target.scatter_(1, labels[:, None], 1 - epsilon + epsilon / classes)
        terms = focal_terms if gamma else _cross_entropy_terms
        value, slope = terms(log_probs, torch.exp(log_rest), log_rest, gamma)
        ctx.save_for_backward(log_probs, target * slope)
        return (target * value).sum(dim=1)

    @staticmethod
    @once_differentiable
    def backward(ctx, upstream):
        log_probs, slopes = ctx.saved_tensors
        gradient = slopes - torch.exp(log_probs) * slopes.sum(dim=1, keepdim=True)
        return upstream[:, None] * gradient, None, None, None


def log_complement(log_probs: Tensor) -> Tensor:
    """Return log(1 - p) of every class, (n, K), from log-softmax rows.

    Only the top class can be near 1; its complement is the log-sum-exp of the others.
    """
    top = log_probs.argmax(dim=1, keepdim=True)
    log_rest_of_top = log_probs.scatter(1, top, -torch.inf).logsumexp(dim=1, keepdim=True)
    floor = torch.finfo(log_probs.dtype).min
    others = torch.log1p(-torch.exp(log_probs.scatter(1, top, floor)))
    return others.scatter(1, top, log_rest_of_top.clamp(min=floor, max=0))
