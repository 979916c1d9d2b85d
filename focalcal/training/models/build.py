"""Networks by model id; torchvision and timm are imported only for the models that need them."""

import math

import torch
from torch import nn

from focalcal.data.prepared import PreparedData
from focalcal.training import catalogue
from focalcal.training.models.extension_models import own_model
from focalcal.training.models.gp_cnn import GlobalPoolingCNN
from focalcal.training.models.tree_lstm import TreeLSTM
from focalcal.training.recipes import RunSpec

MLP_WIDTH = 256


def build_model(
    model_id: str, input_shape: tuple[int, ...], classes: int, vocabulary: tuple[int, int] | None = None
) -> nn.Module:
    """Return the freshly initialised network `model_id` for inputs of shape (d,) or (C, H, W).

    For texts, `vocabulary` is the number of words and the dimension of their vectors.
    """
    catalogue.check_model(model_id)
    input_shape = tuple(input_shape)
    catalogue.check_inputs(model_id, _input_kind(input_shape, is_text=vocabulary is not None))
    if model_id in catalogue.OWN_MODELS:
        return own_model(model_id, input_shape, classes)
    if vocabulary is not None:
        return _TEXT_MODELS[model_id](*vocabulary, classes)
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
    vocabulary = None if data.vectors is None else data.vectors.shape
    model = build_model(spec.model, data.inputs.shape[1:], data.classes, vocabulary)
    if data.vectors is not None:
        model.embedding.weight.data.copy_(torch.from_numpy(data.vectors))
        model.embedding.weight.requires_grad_(spec.recipe.word_vector_rate is not None)
    memory = torch.channels_last if spec.recipe.channels_last else torch.contiguous_format
    return model.to(device, memory_format=memory)


def last_linear(model: nn.Module) -> nn.Linear | None:
    """Return the last linear layer of `model`, whose weights and gradients M20 studies, or None."""
    layers = [module for module in model.modules() if isinstance(module, nn.Linear)]
    return layers[-1] if layers else None


def word_vectors(model: nn.Module) -> nn.Parameter | None:
    """Return the word vectors of a network for texts, None for any other."""
    layer = getattr(model, "embedding", None)
    return layer.weight if isinstance(layer, nn.Embedding) else None


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


def _input_kind(shape: tuple[int, ...], *, is_text: bool) -> str:
    """Return the kind of inputs of this shape."""
    if is_text:
        return "tokens" if len(shape) == 1 else "trees"
    return "images" if len(shape) == 3 else "features"


_LIGHT = {"mlp": mlp, "cnn-small": cnn_small}
_TEXT_MODELS = {"gp-cnn": GlobalPoolingCNN, "tree-lstm": TreeLSTM}
