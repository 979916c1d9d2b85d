"""A small convolutional network."""

from torch import nn

from focalcal.training.models.catalogue import model


@model(id="cnn-small", description="two convolution blocks, for small images")
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
