"""The user's own losses, extensions/losses/NAME.py, as losses of the catalogue.

Each name is an attribute of this module.
"""

import torch
from torch import Tensor

from focalcal.common.errors import UserError
from focalcal.common.extensions import extension_attributes, extension_file, load_extension
from focalcal.training.losses import LossContext

SAMPLES, CLASSES = 6, 3


class OwnLoss:
    """The user's own loss as the training loop calls it; it is checked at the first call."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.function = load_extension("losses", name)
        self.is_checked = False

    def __call__(self, logits: Tensor, labels: Tensor, context: LossContext) -> Tensor:
        """Return one value per sample, (n,)."""
        if not self.is_checked:
            self._check(context.gamma)
            self.is_checked = True
        return self._values(logits, labels, context.gamma)

    def _values(self, logits: Tensor, labels: Tensor, gamma: float | None) -> Tensor:
        """Return the user's values; raise a UserError unless there is one per sample."""
        values = self.function(logits, labels, gamma=gamma)
        if not isinstance(values, Tensor) or values.shape != labels.shape:
            shape = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
            raise UserError(
                f"{extension_file('losses', self.name)}: loss returned {shape}; allowed: a tensor "
                f"{tuple(labels.shape)}, one value per sample; do not sum or average"
            )
        return values

    def _check(self, gamma: float | None) -> None:
        """Raise a UserError unless made-up logits have finite values and a finite gradient."""
        logits = torch.linspace(-4.0, 4.0, SAMPLES * CLASSES).reshape(SAMPLES, CLASSES).requires_grad_()
        with torch.enable_grad():
            values = self._values(logits, torch.arange(SAMPLES) % CLASSES, gamma)
            found = (
                torch.autograd.grad(values.sum(), logits, allow_unused=True)
                if values.requires_grad
                else (None,)
            )
        file = extension_file("losses", self.name)
        if found[0] is None:
            raise UserError(
                f"{file}: loss has no gradient by the logits; allowed: a differentiable loss; do not detach "
                f"its values"
            )
        if not (torch.all(torch.isfinite(values)) and torch.all(torch.isfinite(found[0]))):
            raise UserError(
                f"{file}: loss or its gradient is NaN or infinite for logits between -4 and 4; allowed: "
                f"finite numbers; start from torch.log_softmax(logits, dim=1)"
            )


__getattr__ = extension_attributes("losses", OwnLoss)
