"""The user's own networks, extensions/models/NAME.py, checked."""

import torch
from torch import nn

from focalcal.common.errors import UserError
from focalcal.common.extensions import extension_file, load_extension

SAMPLES = 2


def own_model(input_shape: tuple[int, ...], classes: int, name: str) -> nn.Module:
    """Return the user's network; raise a UserError unless it maps inputs to finite logits (n, classes)."""
    file = extension_file("models", name)
    model = load_extension("models", name)(input_shape, classes)
    if not isinstance(model, nn.Module):
        raise UserError(f"{file}: build returned {type(model).__name__}; allowed: a torch.nn.Module")
    training = model.training
    with torch.no_grad():
        logits = model.eval()(torch.zeros(SAMPLES, *input_shape))
    model.train(training)
    if not isinstance(logits, torch.Tensor) or logits.shape != (SAMPLES, classes):
        shape = tuple(logits.shape) if isinstance(logits, torch.Tensor) else type(logits).__name__
        raise UserError(
            f"{file}: for inputs {(SAMPLES, *input_shape)} the network returns {shape}; allowed: logits "
            f"{(SAMPLES, classes)}, one column per class"
        )
    if not torch.all(torch.isfinite(logits)):
        raise UserError(
            f"{file}: the network returns NaN or infinities for inputs of zeros; allowed: finite logits"
        )
    return model
