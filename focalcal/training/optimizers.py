"""SGD and AdamW on torch's own kernels, without `torch.optim.Optimizer`.

Creating a `torch.optim.Optimizer` imports the compiler, which costs every process 1.7 s, even for a run of a
few seconds. The functional kernels behind it need no such import and give the same bits.
"""

from typing import Protocol

import torch
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from focalcal.training.recipes import Recipe


class Optimizer(Protocol):
    """Parameters, and the state that belongs in a checkpoint."""

    def step(self, learning_rate: float) -> None:
        """Move the parameters once along their gradients."""

    def state(self) -> dict[str, Tensor]:
        """Return the state by name; loading copies into these tensors, which are the optimiser's own."""


class Sgd:
    """SGD with momentum and L2 weight decay, as `torch.optim.SGD`."""

    def __init__(self, parameters: list[Tensor], recipe: Recipe) -> None:
        self.parameters = parameters
        self.recipe = recipe
        # With a zero buffer the first step is g + 0, the same as torch.optim's first step, buffer = g.
        self.buffers = [torch.zeros_like(parameter) for parameter in parameters]

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Move the parameters once along their gradients."""
        parameters, gradients, buffers = _with_gradients(self.parameters, self.buffers)
        sgd(
            parameters,
            gradients,
            buffers,
            fused=True,
            foreach=False,
            weight_decay=self.recipe.weight_decay,
            momentum=self.recipe.momentum,
            lr=learning_rate,
            dampening=0.0,
            nesterov=self.recipe.nesterov,
            maximize=False,
        )

    def state(self) -> dict[str, Tensor]:
        """Return the momentum buffers by position."""
        return {f"momentum.{index}": buffer for index, buffer in enumerate(self.buffers)}


class AdamW:
    """Adam with decoupled weight decay, as `torch.optim.AdamW`; `momentum` is its first beta."""

    SECOND_BETA = 0.999
    EPSILON = 1e-8

    def __init__(self, parameters: list[Tensor], recipe: Recipe) -> None:
        self.parameters = parameters
        self.recipe = recipe
        self.means = [torch.zeros_like(parameter) for parameter in parameters]
        self.squares = [torch.zeros_like(parameter) for parameter in parameters]
        self.steps = [torch.zeros((), device=parameter.device) for parameter in parameters]

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Move the parameters once along their gradients."""
        states = (self.means, self.squares, self.steps)
        parameters, gradients, means, squares, steps = _with_gradients(self.parameters, *states)
        adam(
            parameters,
            gradients,
            means,
            squares,
            [],
            steps,
            fused=True,
            foreach=False,
            decoupled_weight_decay=True,
            amsgrad=False,
            beta1=self.recipe.momentum,
            beta2=self.SECOND_BETA,
            lr=learning_rate,
            weight_decay=self.recipe.weight_decay,
            eps=self.EPSILON,
            maximize=False,
        )

    def state(self) -> dict[str, Tensor]:
        """Return both moments and the step counts by position."""
        groups = {"mean": self.means, "square": self.squares, "step": self.steps}
        return {
            f"{name}.{index}": tensor for name, group in groups.items() for index, tensor in enumerate(group)
        }


def _with_gradients(parameters: list[Tensor], *states: list[Tensor]) -> list[list[Tensor]]:
    """Return parameters, gradients and states of all parameters that have a gradient."""
    rows = [
        (parameter, parameter.grad, *state)
        for parameter, *state in zip(parameters, *states, strict=True)
        if parameter.grad is not None
    ]
    return [list(column) for column in zip(*rows, strict=True)]


def make_optimizer(parameters: list[Tensor], recipe: Recipe) -> Optimizer:
    """Return the recipe's optimiser over `parameters`."""
    return (Sgd if recipe.optimizer == "sgd" else AdamW)(parameters, recipe)
