"""A convolutional network small enough to train on 8 x 8 digits in seconds."""

from torch import nn


def cnn_small(input_shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return two 3 x 3 convolutions, average pooling to 4 x 4 and a hidden layer, for (C, H, W) images."""
    channels = input_shape[0]
    return nn.Sequential(
        *_block(channels, 16),
        *_block(16, 32),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(32 * 16, 64),
        nn.ReLU(),
        nn.Linear(64, classes),
    )


def _block(channels: int, width: int) -> list[nn.Module]:
    return [nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
