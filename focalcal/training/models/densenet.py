"""Torchvision's DenseNet with a stem for small images."""

from torch import nn

import focalcal.training.torchvision_shim  # noqa: F401 (must come before torchvision)

# isort: split
from torchvision.models.densenet import DenseNet

from focalcal.training.models.catalogue import model


@model(id="densenet121", description="DenseNet-121 with a CIFAR stem")
def densenet121(input_shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return DenseNet-121 whose stem is one 3 x 3 convolution of stride 1, without batch norm or pooling."""
    network = DenseNet(
        growth_rate=32, block_config=(6, 12, 24, 16), num_init_features=64, num_classes=classes
    )
    network.features.conv0 = nn.Conv2d(input_shape[0], 64, 3, padding=1, bias=False)
    nn.init.kaiming_normal_(network.features.conv0.weight)
    del network.features.norm0, network.features.relu0, network.features.pool0
    return network
