"""SGD, AdamW and AdaGrad on torch's own kernels, without `torch.optim.Optimizer`.

Creating a `torch.optim.Optimizer` imports the compiler, which costs every process 1.7 s, even for a run of a
few seconds. The functional kernels behind it need no such import and give the same bits.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.optim.adagrad import adagrad
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from focalcal.training.recipes import Recipe


class Optimizer:
    """A kernel of torch, the parameters it moves and, by the kernel's names, the state of each of them."""

    def __init__(
        self, kernel: Callable[..., None], parameters: list[Tensor], buffers: dict[str, list[Tensor]]
    ) -> None:
        self.kernel, self.parameters, self.buffers = kernel, parameters, buffers

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Move the parameters that have a gradient once along it."""
        moved = [index for index, parameter in enumerate(self.parameters) if parameter.grad is not None]
        parameters = [self.parameters[index] for index in moved]
        gradients = [parameter.grad for parameter in parameters]
        buffers = {name: [tensors[index] for index in moved] for name, tensors in self.buffers.items()}
        self.kernel(parameters, gradients, lr=learning_rate, **buffers)

    def state(self) -> dict[str, Tensor]:
        """Return what belongs in a checkpoint; loading copies into these tensors, the optimiser's own."""
        return {
            f"{name}.{index}": tensor
            for name, tensors in self.buffers.items()
            for index, tensor in enumerate(tensors)
        }


@torch.no_grad()
def move_word_vectors(vectors: Tensor, learning_rate: float) -> None:
    """Move the word vectors (V, d) of a batch's words once along their sparse gradient: plain SGD."""
    gradient = vectors.grad.coalesce()
    vectors.index_add_(0, gradient.indices()[0], gradient.values(), alpha=-learning_rate)


def make_optimizer(parameters: list[Tensor], recipe: Recipe) -> Optimizer:
    """Return the recipe's optimiser, which steps as that of `torch.optim` does (SGD, AdamW, Adagrad)."""
    shared = {"fused": True, "foreach": False, "maximize": False, "weight_decay": recipe.weight_decay}
    if recipe.optimizer == "sgd":
        kernel = partial(sgd, momentum=recipe.momentum, dampening=0.0, nesterov=recipe.nesterov, **shared)
        # With a zero buffer the first step is g + 0, the same as torch.optim's first step, buffer = g.
        return Optimizer(kernel, parameters, {"momentum_buffer_list": _zeros(parameters)})
    if recipe.optimizer == "adagrad":
        kernel = partial(adagrad, lr_decay=0.0, eps=1e-10, has_sparse_grad=False, has_complex=False, **shared)
        return Optimizer(
            kernel, parameters, {"state_sums": _zeros(parameters), "state_steps": _steps(parameters)}
        )
    kernel = partial(
        adam,
        max_exp_avg_sqs=[],
        amsgrad=False,
        decoupled_weight_decay=True,
        beta1=recipe.momentum,
        beta2=0.999,
        eps=1e-8,
        **shared,
    )
    buffers = {
        "exp_avgs": _zeros(parameters),
        "exp_avg_sqs": _zeros(parameters),
        "state_steps": _steps(parameters),
    }
    return Optimizer(kernel, parameters, buffers)


def _steps(parameters: list[Tensor]) -> list[Tensor]:
    return [torch.zeros((), device=parameter.device) for parameter in parameters]


def _zeros(parameters: list[Tensor]) -> list[Tensor]:
    return [torch.zeros_like(parameter) for parameter in parameters]
