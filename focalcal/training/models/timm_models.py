"""Any timm model by name."""

import difflib

from torch import nn

import focalcal.training.torchvision_shim  # noqa: F401 (must come before torchvision, which timm imports)

# isort: split
import timm

from focalcal.common.errors import UserError


def timm_model(input_shape: tuple[int, ...], classes: int, name: str) -> nn.Module:
    """Return timm's `name`, untrained, built for images of shape (C, H, W)."""
    if not timm.is_model(name):
        close = difflib.get_close_matches(name, timm.list_models(), n=3)
        hint = f"; did you mean {', '.join(close)}?" if close else ""
        raise UserError(f"model 'timm:{name}': timm {timm.__version__} has no {name!r}{hint}")
    configuration = timm.get_pretrained_cfg(name, allow_unregistered=True)
    size = {"img_size": input_shape[1:]} if configuration and configuration.fixed_input_size else {}
    return timm.create_model(name, num_classes=classes, in_chans=input_shape[0], **size)
