"""Networks for small images from torchvision's blocks: He's CIFAR ResNets, wide, bottleneck, DenseNet."""

from functools import partial

from torch import Tensor, nn

import focalcal.training.torchvision_shim  # noqa: F401 (must come before torchvision)

# isort: split
from torchvision.models.densenet import DenseNet
from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet

HE_WIDTHS = (16, 32, 64)


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


def he_resnet(depth: int, input_shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return He's CIFAR ResNet of `depth` = 6 n + 2 layers."""
    return ThreeStageResNet(input_shape[0], classes, (depth - 2) // 6)


def wide_resnet_26_10(input_shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return M20's WRN-26-10: He's ResNet-26, its stages ten times as wide, with projection shortcuts."""
    return ThreeStageResNet(input_shape[0], classes, 4, (160, 320, 640), has_projections=True)


def bottleneck_resnet(layers: list[int], input_shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return torchvision's bottleneck ResNet with a 3 x 3 stem of stride 1 and no max pooling."""
    model = ResNet(Bottleneck, layers, num_classes=classes)
    model.conv1 = nn.Conv2d(input_shape[0], 64, 3, padding=1, bias=False)
    nn.init.kaiming_normal_(model.conv1.weight, mode="fan_out", nonlinearity="relu")
    model.maxpool = nn.Identity()
    return model


def densenet121(input_shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return DenseNet-121 whose stem is one 3 x 3 convolution of stride 1, without batch norm or pooling."""
    model = DenseNet(growth_rate=32, block_config=(6, 12, 24, 16), num_init_features=64, num_classes=classes)
    model.features.conv0 = nn.Conv2d(input_shape[0], 64, 3, padding=1, bias=False)
    nn.init.kaiming_normal_(model.features.conv0.weight)
    del model.features.norm0, model.features.relu0, model.features.pool0
    return model


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


BUILDERS = {
    **{f"resnet{depth}": partial(he_resnet, depth) for depth in (8, 20, 44, 110)},
    "resnet50": partial(bottleneck_resnet, [3, 4, 6, 3]),
    "resnet110-bottleneck": partial(bottleneck_resnet, [3, 4, 26, 3]),
    "wrn-26-10": wide_resnet_26_10,
    "densenet121": densenet121,
}
