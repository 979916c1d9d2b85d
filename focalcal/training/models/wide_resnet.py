"""M20's wide ResNet for small images."""

from torch import nn

from focalcal.training.models.catalogue import model
from focalcal.training.models.he_resnet import ThreeStageResNet


@model(id="wrn-26-10", description="Wide-ResNet-26-10")
def wide_resnet_26_10(input_shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return M20's WRN-26-10: He's ResNet-26, its stages ten times as wide, with projection shortcuts."""
    return ThreeStageResNet(input_shape[0], classes, 4, (160, 320, 640), has_projections=True)
