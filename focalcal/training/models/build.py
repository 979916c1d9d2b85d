"""Networks by model id; torchvision and timm are imported only by the models that need them."""

from collections.abc import Callable

import torch
from torch import nn

from focalcal.common.errors import UserError
from focalcal.data.prepared import PreparedData
from focalcal.training import catalogue
from focalcal.training.models.perceptron import mlp
from focalcal.training.models.small_cnn import cnn_small
from focalcal.training.spec import RunSpec

Builder = Callable[[tuple[int, ...], int], nn.Module]


def build_model(model_id: str, input_shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return the freshly initialised network `model_id` for inputs of shape (d,) or (C, H, W)."""
    catalogue.check_model(model_id)
    if len(input_shape) != 3 and model_id not in catalogue.FEATURE_MODELS:
        raise UserError(
            f"model {model_id!r} takes images (C, H, W), but the dataset has features of shape "
            f"{tuple(input_shape)}; use {', '.join(catalogue.FEATURE_MODELS)}"
        )
    return _builder(model_id)(tuple(input_shape), classes)


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


def _builder(model_id: str) -> Builder:
    if model_id in _LIGHT:
        return _LIGHT[model_id]
    if model_id.startswith(catalogue.TIMM_PREFIX):
        from focalcal.training.models.timm_models import timm_model  # noqa: PLC0415 (takes 1 s)

        name = model_id.removeprefix(catalogue.TIMM_PREFIX)
        return lambda input_shape, classes: timm_model(name, input_shape, classes)
    if model_id == "densenet121":
        from focalcal.training.models.dense import densenet121  # noqa: PLC0415 (torchvision, 0.3 s)

        return densenet121
    return _residual_builder(model_id)


def _residual_builder(model_id: str) -> Builder:
    from focalcal.training.models import residual  # noqa: PLC0415 (torchvision, 0.3 s)

    if model_id == "wrn-26-10":
        return residual.wide_resnet_26_10
    if model_id in _BOTTLENECKS:
        layers = _BOTTLENECKS[model_id]
        return lambda input_shape, classes: residual.bottleneck_resnet(layers, input_shape, classes)
    depth = int(model_id.removeprefix("resnet"))
    return lambda input_shape, classes: residual.he_resnet(depth, input_shape, classes)


_LIGHT: dict[str, Builder] = {"mlp": mlp, "cnn-small": cnn_small}
_BOTTLENECKS = {"resnet50": [3, 4, 6, 3], "resnet110-bottleneck": [3, 4, 26, 3]}
