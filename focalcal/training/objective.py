"""The loss of one run: its function, its parameters and the state that moves during training."""

import torch
from torch import Tensor

from focalcal.training import losses
from focalcal.training.adafocal import AdaFocal
from focalcal.training.catalogue import LOSSES, parse_loss
from focalcal.training.recipes import Recipe


class TrainingObjective:
    """Values of a loss id under a recipe; AdaFocal's gammas move at the end of an epoch."""

    def __init__(self, loss_id: str, recipe: Recipe) -> None:
        parsed = parse_loss(loss_id)
        kind = LOSSES[parsed.kind]
        self.reduction = kind.reduction or recipe.reduction
        self.is_adaptive = parsed.kind == "adafocal"
        self.function: losses.LossFunction = getattr(losses, kind.function)
        self.context = losses.LossContext(
            gamma=parsed.gamma,
            epsilon=parsed.epsilon,
            gammas=kind.gammas,
            thresholds=recipe.gamma_thresholds,
            milestones=recipe.gamma_milestones,
            adafocal=AdaFocal(recipe.adafocal),
        )

    def values(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each sample, float32 (n,), whatever precision the logits have."""
        return self.function(logits.float(), labels, self.context)

    def reduce(self, values: Tensor) -> Tensor:
        """Return the scalar that is differentiated: the batch's sum or mean."""
        return values.sum() if self.reduction == "sum" else values.mean()

    def start_epoch(self, epoch: int) -> None:
        """Tell a scheduled loss which epoch (from 0) begins."""
        self.context.epoch = epoch

    def end_epoch(self, logits: Tensor, labels: Tensor) -> None:
        """Let an adaptive loss move by the predictions of its split."""
        if self.is_adaptive:
            self.context.adafocal.update(logits, labels)

    def gammas(self) -> list[float]:
        """Return the gammas in force: one a bin for AdaFocal, one a stage for FLSD, else at most one."""
        if self.is_adaptive:
            return self.context.adafocal.gammas.tolist()
        if self.function is losses.focal_scheduled:
            return [losses.scheduled_gamma(self.context)]
        if self.context.gamma is not None:
            return [self.context.gamma]
        return list(self.context.gammas)

    def state(self) -> dict[str, Tensor]:
        """Return the tensors a checkpoint must hold."""
        return self.context.adafocal.state() if self.is_adaptive else {}

    def load_state(self, state: dict[str, Tensor], device: torch.device) -> None:
        """Take the tensors of `state()` back."""
        if self.is_adaptive:
            self.context.adafocal.load_state({name: value.to(device) for name, value in state.items()})
