"""From a model id to a network; torchvision and timm are imported only by the models that stand on them."""

import torch
from torch import nn

from focalcal.data.prepared import PreparedData
from focalcal.training import catalogue
from focalcal.training.models import perceptron, small_cnn
from focalcal.training.spec import RunSpec
from focalcal.workflow.errors import UserError


def build_model(model_id: str, input_shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return the freshly initialised network `model_id` for inputs of shape (d,) or (C, H, W)."""
    catalogue.check_model(model_id)
    if len(input_shape) != 3 and model_id not in catalogue.FEATURE_MODELS:
        raise UserError(
            f"model {model_id!r} takes images (C, H, W), but the dataset has features of shape "
            f"{input_shape}; use {', '.join(catalogue.FEATURE_MODELS)}"
        )
    return _BUILDERS[model_id](input_shape, classes)


def last_linear(model: nn.Module) -> nn.Linear | None:
    """Return the last linear layer of `model`, whose weights and gradients M20 watches; None without one."""
    layers = [module for module in model.modules() if isinstance(module, nn.Linear)]
    return layers[-1] if layers else None


def initial_model(spec: RunSpec, data: PreparedData, device: torch.device) -> nn.Module:
    """Return the untrained network of `spec`; its seed alone determines the weights."""
    torch.manual_seed(spec.seed)
    model = build_model(spec.model, data.inputs.shape[1:], data.classes)
    is_image = data.inputs.ndim == 4
    memory = torch.channels_last if is_image and spec.recipe.channels_last else torch.contiguous_format
    return model.to(device, memory_format=memory)


_BUILDERS = {
    "mlp": perceptron.mlp,
    "cnn-small": small_cnn.cnn_small,
}
