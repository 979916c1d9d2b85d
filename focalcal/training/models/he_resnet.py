"""He's ResNets for small images, from torchvision's basic blocks."""

from torch import Tensor, nn

import focalcal.training.torchvision_shim  # noqa: F401 (must come before torchvision)

# isort: split
from torchvision.models.resnet import BasicBlock

from focalcal.training.models.catalogue import model

HE_WIDTHS = (16, 32, 64)


@model(id="resnet8", description="He's CIFAR ResNet-8 (basic blocks, 16-32-64)", arguments={"depth": 8})
@model(id="resnet20", description="He's CIFAR ResNet-20", arguments={"depth": 20})
@model(id="resnet44", description="He's CIFAR ResNet-44", arguments={"depth": 44})
@model(
    id="resnet110",
    description="He's CIFAR ResNet-110, 1.7 million parameters",
    arguments={"depth": 110},
)
def he_resnet(input_shape: tuple[int, ...], classes: int, depth: int) -> nn.Module:
    """Return He's CIFAR ResNet of `depth` = 6 n + 2 layers."""
    return ThreeStageResNet(input_shape[0], classes, (depth - 2) // 6)


class ThreeStageResNet(nn.Module):
    """He et al. 2016, section 4.2: a stem of 16 channels, three stages of basic blocks, global pooling."""

    def __init__(
        self,
        channels: int,
        classes: int,
        blocks: int,
        widths: tuple[int, int, int] = HE_WIDTHS,
        *,
        has_projections: bool = False,
    ) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(channels, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True)
        )
        steps = zip((16, *widths[:-1]), widths, (1, 2, 2), strict=True)
        self.stages = nn.Sequential(
            *(_stage(*step, blocks, has_projections=has_projections) for step in steps)
        )
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(widths[-1], classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        """Return logits (n, K) of images (n, C, H, W)."""
        return self.classifier(self.pool(self.stages(self.stem(images))).flatten(1))


class PaddedShortcut(nn.Module):
    """He's option A: every second pixel, zeros in the new channels, no parameters."""

    def __init__(self, new_channels: int, stride: int) -> None:
        super().__init__()
        self.new_channels, self.stride = new_channels, stride

    def forward(self, inputs: Tensor) -> Tensor:
        """Return (n, C + new, H / stride, W / stride) from (n, C, H, W)."""
        # Not a slice: its gradient, and so that of every earlier layer, would not be channels-last.
        inputs = nn.functional.avg_pool2d(inputs, kernel_size=1, stride=self.stride)
        return nn.functional.pad(inputs, (0, 0, 0, 0, 0, self.new_channels))


def _stage(width: int, next_width: int, stride: int, blocks: int, *, has_projections: bool) -> nn.Sequential:
    shortcut = None
    if stride != 1 or width != next_width:
        shortcut = (
            nn.Sequential(nn.Conv2d(width, next_width, 1, stride, bias=False), nn.BatchNorm2d(next_width))
            if has_projections
            else PaddedShortcut(next_width - width, stride)
        )
    first = BasicBlock(width, next_width, stride, shortcut)
    return nn.Sequential(first, *(BasicBlock(next_width, next_width) for _ in range(blocks - 1)))
