"""Validation and test logits of a trained network."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from focalcal.common import checksums
from focalcal.common.errors import UserError
from focalcal.data.prepared import PreparedData, load_dataset
from focalcal.training.batches import predict
from focalcal.training.devices import choose_device, configure_torch
from focalcal.training.models.build import initial_model
from focalcal.training.recipes import RunSpec
from focalcal.training.residents import resident_split


def logits_of_run(spec: RunSpec, data: Path, weights: Path) -> dict[str, np.ndarray]:
    """Return the arrays of `logits.npz` of a run from the files of its dataset and its weights."""
    # Prediction needs no GPU, and on a cluster only training asks for one.
    recipe = replace(spec.recipe, device="auto") if spec.recipe.device == "cuda" else spec.recipe
    device = choose_device(recipe)
    configure_torch(recipe, device)
    return dump_logits(spec, load_dataset(data, memory_map=True).for_seed(spec.seed), weights, device)


def dump_logits(
    spec: RunSpec, data: PreparedData, weights: Path, device: torch.device
) -> dict[str, np.ndarray]:
    """Return the arrays of `logits.npz`: logits, labels and known posteriors of validation and test."""
    model = load_model(spec, data, weights, device)
    arrays = {}
    for name in ("val", "test"):
        indices = data.indices(name)
        split = resident_split(data, indices, device)
        arrays[f"{name}_logits"] = predict(model, split, spec.recipe.evaluation_batch_size).cpu().numpy()
        arrays[f"{name}_labels"] = data.labels[indices]
        if data.posterior is not None:
            arrays[f"{name}_posterior"] = data.posterior[indices]
    return arrays


def load_model(spec: RunSpec, data: PreparedData, weights: Path, device: torch.device) -> nn.Module:
    """Return the network of `spec` with the given weights; raise UserError if they do not fit."""
    checksums.check(weights)
    model = initial_model(spec, data, device)
    try:
        model.load_state_dict(load_file(weights))
    except (RuntimeError, SafetensorError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            f"{weights} does not hold weights of {spec.model!r} ({reason}); train the run again"
        ) from None
    return model
