"""Torchvision's bottleneck ResNets with a stem for small images."""

from torch import nn

import focalcal.training.torchvision_shim  # noqa: F401 (must come before torchvision)

# isort: split
from torchvision.models.resnet import Bottleneck, ResNet

from focalcal.training.models.catalogue import model


@model(
    id="resnet50",
    description="ResNet-50 with a 3 x 3 stem, for CIFAR and TinyImageNet (M20, K24)",
    arguments={"layers": [3, 4, 6, 3]},
)
@model(
    id="resnet110-bottleneck",
    description="M20's ResNet-110: bottlenecks [3, 4, 26, 3] with a CIFAR stem",
    arguments={"layers": [3, 4, 26, 3]},
)
def bottleneck_resnet(input_shape: tuple[int, ...], classes: int, layers: list[int]) -> nn.Module:
    """Return torchvision's bottleneck ResNet with a 3 x 3 stem of stride 1 and no max pooling."""
    network = ResNet(Bottleneck, layers, num_classes=classes)
    network.conv1 = nn.Conv2d(input_shape[0], 64, 3, padding=1, bias=False)
    nn.init.kaiming_normal_(network.conv1.weight, mode="fan_out", nonlinearity="relu")
    network.maxpool = nn.Identity()
    return network
