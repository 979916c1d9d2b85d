"""SGD and AdamW on torch's own kernels, without `torch.optim.Optimizer`.

Creating a `torch.optim.Optimizer` imports the compiler, which costs every process 1.7 s, even for a run of a
few seconds. The functional kernels behind it need no such import and give the same bits.
"""

from typing import ClassVar

import torch
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from focalcal.training.recipes import Recipe

SECOND_BETA = 0.999
EPSILON = 1e-8


class Optimizer:
    """Parameters and, by name, the state of each of them."""

    BUFFERS: ClassVar[tuple[str, ...]]

    def __init__(self, parameters: list[Tensor], recipe: Recipe) -> None:
        self.parameters, self.recipe = parameters, recipe
        self.buffers = {name: [torch.zeros_like(value) for value in parameters] for name in self.BUFFERS}

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Move the parameters that have a gradient once along it."""
        rows = [
            (parameter, parameter.grad, *state)
            for parameter, *state in zip(self.parameters, *self.buffers.values(), strict=True)
            if parameter.grad is not None
        ]
        self._update(learning_rate, *(list(column) for column in zip(*rows, strict=True)))

    def state(self) -> dict[str, Tensor]:
        """Return what belongs in a checkpoint; loading copies into these tensors, the optimiser's own."""
        return {
            f"{name}.{index}": tensor
            for name, tensors in self.buffers.items()
            for index, tensor in enumerate(tensors)
        }

    def _update(self, learning_rate: float, *columns: list[Tensor]) -> None:
        """Change parameters in place, given these, their gradients and one list per buffer."""
        raise NotImplementedError


class Sgd(Optimizer):
    """SGD with momentum and L2 weight decay, as `torch.optim.SGD`.

    With a zero buffer the first step is g + 0, the same as torch.optim's first step, buffer = g.
    """

    BUFFERS = ("momentum",)

    def _update(self, learning_rate: float, *columns: list[Tensor]) -> None:
        sgd(
            *columns,
            fused=True,
            foreach=False,
            weight_decay=self.recipe.weight_decay,
            momentum=self.recipe.momentum,
            lr=learning_rate,
            dampening=0.0,
            nesterov=self.recipe.nesterov,
            maximize=False,
        )


class AdamW(Optimizer):
    """Adam with decoupled weight decay, as `torch.optim.AdamW`; `momentum` is its first beta."""

    BUFFERS = ("mean", "square")

    def __init__(self, parameters: list[Tensor], recipe: Recipe) -> None:
        super().__init__(parameters, recipe)
        self.buffers["step"] = [torch.zeros((), device=parameter.device) for parameter in parameters]

    def _update(self, learning_rate: float, *columns: list[Tensor]) -> None:
        *columns, steps = columns
        adam(
            *columns,
            max_exp_avg_sqs=[],
            state_steps=steps,
            fused=True,
            foreach=False,
            decoupled_weight_decay=True,
            amsgrad=False,
            beta1=self.recipe.momentum,
            beta2=SECOND_BETA,
            lr=learning_rate,
            weight_decay=self.recipe.weight_decay,
            eps=EPSILON,
            maximize=False,
        )


def make_optimizer(parameters: list[Tensor], recipe: Recipe) -> Optimizer:
    """Return the recipe's optimiser over `parameters`."""
    return (Sgd if recipe.optimizer == "sgd" else AdamW)(parameters, recipe)
