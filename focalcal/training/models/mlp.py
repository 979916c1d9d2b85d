"""The multilayer perceptron of C21."""

import math

from torch import nn

from focalcal.training.models.catalogue import model

WIDTH = 256


@model(
    id="mlp",
    description="C21's three-layer perceptron, for features or small images",
    inputs=("features", "images"),
)
def mlp(input_shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return C21's perceptron of three linear layers for inputs of any shape."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(math.prod(input_shape), WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, classes),
    )
