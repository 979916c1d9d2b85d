"""The loss of one run: its function, its parameters and the state that changes during training."""

import importlib
from typing import Any

import torch
from torch import Tensor

from focalcal.training import losses
from focalcal.training.catalogue import LOSSES, parse_loss
from focalcal.training.recipes import AdaFocalSettings, Recipe


class TrainingObjective:
    """The loss of a loss id under a recipe; an adaptive one changes at the end of each epoch."""

    def __init__(self, loss_id: str, recipe: Recipe) -> None:
        parsed = parse_loss(loss_id)
        kind = LOSSES[parsed.kind]
        self.reduction = kind.reduction or recipe.reduction
        self.function, self.context = loss_parts(
            loss_id,
            recipe.adafocal,
            milestones=recipe.gamma_milestones,
            mmce_weight=recipe.mmce_weight,
        )
        self.is_adaptive = self.context.state is not None

    def values(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each sample, float32 (n,), for logits of any precision."""
        return self.function(logits.float(), labels, self.context)

    def reduce(self, values: Tensor) -> Tensor:
        """Return the scalar to differentiate: the sum or mean over the batch."""
        return values.sum() if self.reduction == "sum" else values.mean()

    def start_epoch(self, epoch: int) -> None:
        """Set the epoch (from 0) of a scheduled loss."""
        self.context.epoch = epoch

    def end_epoch(self, logits: Tensor, labels: Tensor) -> None:
        """Update an adaptive loss from the predictions on its split."""
        if self.is_adaptive:
            self.context.state.update(logits, labels)

    def gammas(self) -> list[float]:
        """Return the current gammas: one per bin of an adaptive loss or stage of FLSD, else at most one."""
        if self.is_adaptive:
            return self.context.state.gammas.tolist()
        if self.function is losses.focal_scheduled:
            return [losses.scheduled_gamma(self.context)]
        if self.context.gamma is not None:
            return [self.context.gamma]
        return list(self.context.gammas)

    def state(self) -> dict[str, Tensor]:
        """Return the tensors that belong in a checkpoint."""
        return self.context.state.state() if self.is_adaptive else {}

    def load_state(self, state: dict[str, Tensor], device: torch.device) -> None:
        """Restore the tensors of `state()`."""
        if self.is_adaptive:
            self.context.state.load_state({name: value.to(device) for name, value in state.items()})


def loss_parts(
    loss_id: str, of_state: AdaFocalSettings | None = None, **settings: Any
) -> tuple[losses.LossFunction, losses.LossContext]:
    """Return the function of a loss id and its context.

    `settings` are those that the id does not have, `of_state` those of an adaptive loss.
    """
    parsed = parse_loss(loss_id)
    kind = LOSSES[parsed.kind]
    module = importlib.import_module(kind.module)
    context = losses.LossContext(
        number=parsed.number,
        gamma=parsed.gamma,
        epsilon=parsed.epsilon,
        gammas=parsed.gammas,
        thresholds=parsed.thresholds,
        state=getattr(module, kind.state)(of_state) if kind.state else None,
        **settings,
    )
    return getattr(module, kind.function), context
