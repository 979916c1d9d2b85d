"""C21's three-layer perceptron."""

import math

from torch import nn

WIDTH = 256


def mlp(input_shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return a perceptron of three linear layers, 256 wide, for inputs of any shape."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(math.prod(input_shape), WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, classes),
    )
