"""Networks by model id; torchvision and timm are imported only for the models that need them."""

import math

import torch
from torch import nn

from focalcal.common.errors import UserError
from focalcal.data.prepared import PreparedData
from focalcal.training import catalogue
from focalcal.training.models.extension_models import own_model
from focalcal.training.recipes import RunSpec

MLP_WIDTH = 256


def build_model(model_id: str, input_shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return the freshly initialised network `model_id` for inputs of shape (d,) or (C, H, W)."""
    catalogue.check_model(model_id)
    input_shape = tuple(input_shape)
    if model_id in catalogue.OWN_MODELS:
        return own_model(model_id, input_shape, classes)
    if len(input_shape) != 3 and catalogue.takes_only_images(model_id):
        raise UserError(
            f"model {model_id!r} takes images (C, H, W), but the dataset has features of shape "
            f"{input_shape}; use {', '.join(catalogue.FEATURE_MODELS)}"
        )
    if model_id in _LIGHT:
        return _LIGHT[model_id](input_shape, classes)
    if model_id.startswith(catalogue.TIMM_PREFIX):
        from focalcal.training.models.timm_models import timm_model  # noqa: PLC0415 (takes 1 s)

        return timm_model(model_id.removeprefix(catalogue.TIMM_PREFIX), input_shape, classes)
    from focalcal.training.models.torchvision_models import BUILDERS  # noqa: PLC0415 (takes 0.3 s)

    return BUILDERS[model_id](input_shape, classes)


def initial_model(spec: RunSpec, data: PreparedData, device: torch.device) -> nn.Module:
    """Return the untrained network of `spec`; its seed alone determines the weights."""
    torch.manual_seed(spec.seed)
    model = build_model(spec.model, data.inputs.shape[1:], data.classes)
    is_image = data.inputs.ndim == 4
    memory = torch.channels_last if is_image and spec.recipe.channels_last else torch.contiguous_format
    return model.to(device, memory_format=memory)


def last_linear(model: nn.Module) -> nn.Linear | None:
    """Return the last linear layer of `model`, whose weights and gradients M20 studies, or None."""
    layers = [module for module in model.modules() if isinstance(module, nn.Linear)]
    return layers[-1] if layers else None


def mlp(input_shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return C21's perceptron of three linear layers for inputs of any shape."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(math.prod(input_shape), MLP_WIDTH),
        nn.ReLU(),
        nn.Linear(MLP_WIDTH, MLP_WIDTH),
        nn.ReLU(),
        nn.Linear(MLP_WIDTH, classes),
    )


def cnn_small(input_shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return two 3 x 3 convolutions, pooling to about 4 x 4 and a hidden layer, for (C, H, W) images."""
    channels, height, width = input_shape
    pooling = (max(1, height // 4), max(1, width // 4))
    return nn.Sequential(
        *_convolution_block(channels, 16),
        *_convolution_block(16, 32),
        nn.AvgPool2d(pooling),
        nn.Flatten(),
        nn.Linear(32 * (height // pooling[0]) * (width // pooling[1]), 64),
        nn.ReLU(),
        nn.Linear(64, classes),
    )


def _convolution_block(channels: int, width: int) -> list[nn.Module]:
    return [nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]


_LIGHT = {"mlp": mlp, "cnn-small": cnn_small}
