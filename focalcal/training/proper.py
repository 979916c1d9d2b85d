"""The proper part of the focal loss, as a training loss: focal loss of Psi^-1(softmax), with its gradient.

K24 splits the focal loss into a confidence-raising map and a proper loss: l_gamma(u) = L*(Psi(u)). Training
on L* needs u = Psi^-1(q) for the network's q. With x = log u and H(x) = log h(u) (h = u / phi, C21 Eq. 13), u
solves H(x_k) = log q_k + c with sum u = 1: K + 1 equations whose Jacobian is an arrow, so that one Newton
step costs as much as evaluating them. The top class is stored as log(1 - u), the others as log u: both stay
accurate at any confidence. All computations use float64.
"""

import math

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from focalcal.training.catalogue import loss
from focalcal.training.losses import LossContext, cross_entropy

ITERATIONS, ITERATIONS_ABOVE_7 = 5, 10
"""A relative error of log q below 1e-10 takes 5 steps for gamma <= 7 and 8 for gamma = 20, at any logits."""
MAX_CHANGE = 4.0
"""Longest step in log u; without a limit, Newton's method can overshoot for gamma above 7."""
_SMALLEST_OTHER_REST = 1e-6
"""Keeps the top class's entry finite until it is replaced, and overshooting steps inside the domain."""


@loss(
    id="proper-focal",
    description="the proper part of the focal loss (K24)",
    number="gamma",
    bounds=(0.0, 20.0),
    risk_gamma=0.0,
)
def proper_focal(logits: Tensor, labels: Tensor, context: LossContext) -> Tensor:
    """Return the proper part L* of the focal loss, (n,): focal loss of Psi^-1(softmax) (K24 Prop. 4)."""
    if context.gamma == 0:
        return cross_entropy(logits, labels, context)
    return proper_focal_values(logits, labels, context.gamma)


def proper_focal_values(logits: Tensor, labels: Tensor, gamma: float) -> Tensor:
    """Return L*(softmax(logits), label), (n,), in the dtype of `logits` (n, K); 0 < gamma <= 20."""
    return _ProperFocal.apply(logits, labels, gamma)


class _ProperFocal(torch.autograd.Function):
    """Implicit differentiation: dx_k = (d log q_k + dc) / H'(x_k), and dc keeps the sum of u at 1."""

    @staticmethod
    def forward(ctx, logits, labels, gamma):
        solution = _Solution(torch.log_softmax(logits.double(), dim=1), gamma)
        index = labels[:, None]
        names = ("log_u", "log_rest", "rest", "ratio", "slope_times_rest")
        log_u, log_rest, rest, ratio, slope = (getattr(solution, name).gather(1, index) for name in names)
        weight = torch.exp(gamma * log_rest)
        # 1 / H' is (1 - u) over the bounded product (1 - u) H'.
        pull = -weight * (1 + gamma * ratio) * rest / slope
        gradient = -pull * solution.shares
        others = solution.shares.scatter(1, index, 0.0).sum(dim=1, keepdim=True)
        ctx.save_for_backward(gradient.scatter(1, index, pull * others).to(logits.dtype))
        return (-weight * log_u)[:, 0].clamp(max=torch.finfo(logits.dtype).max).to(logits.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, upstream):
        (gradient,) = ctx.saved_tensors
        return upstream[:, None] * gradient, None, None


class _Solution:
    """u = Psi^-1(q) for rows of log q (n, K), with the terms of its derivative, each (n, K).

    `log_u`, `rest` = 1 - u, `log_rest` = log(1 - u), `ratio` = -u log(u) / (1 - u),
    `slope_times_rest` = (1 - u) H'(log u), `shares`: d log u_k / d log q_j = ([k = j] - shares_j) / H'_k.
    """

    def __init__(self, log_q: Tensor, gamma: float) -> None:
        self.gamma = gamma
        self.top = log_q.argmax(dim=1, keepdim=True)
        # Exact in the limit of a confident row: the others keep their ratios, since h(u) = u for small u, and
        # the top class follows from h(u) = (1 - u)^-gamma / (gamma + 1) near 1.
        others = _log_sum_of_others(log_q, self.top)
        start = log_q + (others - math.log1p(gamma)) / (1 + gamma) - others
        self._evaluate(start)
        for _ in range(ITERATIONS if gamma <= 7 else ITERATIONS_ABOVE_7):
            residual = self.log_h - log_q
            offset = (self.shares * residual).sum(dim=1, keepdim=True)
            change = (offset - residual) * self.rest / self.slope_times_rest
            # A Newton step leaves the simplex along its tangent; the softmax projects back onto it.
            self._evaluate(torch.log_softmax(self.log_u + change.clamp(-MAX_CHANGE, MAX_CHANGE), dim=1))

    def _evaluate(self, log_u: Tensor) -> None:
        """Set log u of all classes except the top one, which follows from them, and evaluate H there."""
        gamma, top = self.gamma, self.top
        log_rest_of_top = _log_sum_of_others(log_u, top)
        self.log_u = log_u.scatter(1, top, _log1mexp(log_rest_of_top))
        u = torch.exp(self.log_u)
        # Only the top class can be near 1; 1 - u of the others, which are below 1/2, loses no accuracy.
        rest = (1 - u).clamp(min=_SMALLEST_OTHER_REST)
        self.log_rest = torch.log(rest).scatter(1, top, log_rest_of_top)
        self.rest = rest = rest.scatter(1, top, torch.exp(log_rest_of_top))
        near = rest < 1e-6
        self.ratio = torch.where(near, 1 - rest / 2, -u * self.log_u / torch.where(near, 1.0, rest))
        grown = 1 + gamma * self.ratio
        self.log_h = self.log_u - gamma * self.log_rest - torch.log(grown)
        self.slope_times_rest = rest + gamma * (2 * u - self.ratio + gamma * self.ratio * u) / grown
        # u / H', divided by 1 - u of the top class, which neither underflows nor overflows.
        weights = torch.exp(self.log_u + self.log_rest - log_rest_of_top) / self.slope_times_rest
        self.shares = weights / weights.sum(dim=1, keepdim=True)


def _log1mexp(values: Tensor) -> Tensor:
    """Return log(1 - exp(values)) for values < 0, without cancellation."""
    return torch.where(values > -0.693, torch.log(-torch.expm1(values)), torch.log1p(-torch.exp(values)))


def _log_sum_of_others(log_u: Tensor, top: Tensor) -> Tensor:
    return log_u.scatter(1, top, -torch.inf).logsumexp(dim=1, keepdim=True)
