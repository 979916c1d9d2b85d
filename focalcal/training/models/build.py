"""Networks by model id; the file of a model is imported only for runs that use it."""

import importlib

import torch
from torch import nn

from focalcal.data.prepared import PreparedData
from focalcal.training.models.catalogue import check_inputs, find_model
from focalcal.training.recipes import RunSpec


def build_model(
    model_id: str, input_shape: tuple[int, ...], classes: int, vocabulary: tuple[int, int] | None = None
) -> nn.Module:
    """Return the freshly initialised network `model_id` for inputs of shape (d,) or (C, H, W).

    For texts, `vocabulary` is the number of words and the dimension of their vectors.
    """
    kind = find_model(model_id)
    input_shape = tuple(input_shape)
    check_inputs(model_id, _input_kind(input_shape, is_text=vocabulary is not None))
    builder = getattr(importlib.import_module(kind.module), kind.builder)
    return builder(*(vocabulary or (input_shape,)), classes, **kind.arguments)


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


def _input_kind(shape: tuple[int, ...], *, is_text: bool) -> str:
    """Return the kind of inputs of this shape."""
    if is_text:
        return "tokens" if len(shape) == 1 else "trees"
    return "images" if len(shape) == 3 else "features"
