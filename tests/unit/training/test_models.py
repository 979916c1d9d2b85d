from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from focalcal.common.errors import UserError
from focalcal.training.models.build import build_model, last_linear
from focalcal.training.models.catalogue import MODELS, find_model, model_file


def trainable(model_id, shape, classes):
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in build_model(model_id, shape, classes).parameters())


@pytest.mark.parametrize(
    ("model_id", "classes", "count"),
    [
        ("resnet50", 10, 23_520_842),
        ("resnet50", 100, 23_705_252),
        ("resnet110-bottleneck", 10, 45_864_522),
        ("wrn-26-10", 10, 36_481_434),
        ("densenet121", 10, 6_956_298),
        # He et al. 2016, Table 6: 0.27, 0.66 and 1.7 million; exact counts from the layer shapes.
        ("resnet8", 10, 75_290),
        ("resnet20", 10, 269_722),
        ("resnet44", 10, 658_586),
        ("resnet110", 10, 1_727_962),
    ],
)
def test_parameter_counts(model_id, classes, count):
    assert trainable(model_id, (3, 32, 32), classes) == count


IMAGE_MODELS = [name for name, model in MODELS.items() if "images" in model.inputs]


@pytest.mark.parametrize("model_id", [*IMAGE_MODELS, "timm:resnet18", "timm:vit_tiny_patch16_224"])
def test_every_model_maps_images_to_logits(model_id):
    torch.manual_seed(0)
    size = 16 if model_id.startswith("timm:vit") else 8
    model = build_model(model_id, (3, size, size), 7).eval().to(memory_format=torch.channels_last)
    with torch.no_grad():
        logits = model(torch.randn(2, 3, size, size).to(memory_format=torch.channels_last))
    assert logits.shape == (2, 7)
    assert torch.isfinite(logits).all()
    assert last_linear(model).out_features == 7


def test_shortcut_without_parameters_keeps_every_second_pixel():
    from focalcal.training.models.he_resnet import PaddedShortcut  # noqa: PLC0415 (torchvision only here)

    images = torch.arange(32.0).reshape(1, 2, 4, 4)
    result = PaddedShortcut(3, 2)(images)
    assert result.shape == (1, 5, 2, 2)
    assert result[0, 0].tolist() == [[0, 2], [8, 10]]
    assert result[0, 2:].abs().sum() == 0


class GradientLayouts(TorchDispatchMode):
    """Counts the tensors read by the backward passes of ReLUs: channels-last or not."""

    def __init__(self) -> None:
        super().__init__()
        self.counts = Counter()

    def __torch_dispatch__(self, function, _types, args=(), kwargs=None):
        if function is torch.ops.aten.threshold_backward.default:
            self.counts.update(tensor.is_contiguous(memory_format=torch.channels_last) for tensor in args[:2])
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize(("model_id", "relus"), [("resnet8", 7), ("resnet20", 19), ("resnet50", 49)])
def test_gradients_stay_channels_last(model_id, relus):
    model = build_model(model_id, (3, 32, 32), 10).to(memory_format=torch.channels_last)
    images = torch.randn(2, 3, 32, 32).to(memory_format=torch.channels_last)
    loss = model(images).sum()
    with GradientLayouts() as layouts:
        loss.backward()
    pooling = 1
    assert layouts.counts == {True: 2 * relus - pooling, False: pooling}


def test_wrong_models_are_refused():
    with pytest.raises(
        UserError, match="model 'resnet8' takes images, but the dataset has features; allowed there: mlp"
    ):
        build_model("resnet8", (16,), 10)
    with pytest.raises(
        UserError, match=r"model 'timm:resnet19': timm .* has no 'resnet19'; did you mean resnet18"
    ):
        build_model("timm:resnet19", (3, 32, 32), 10)


def test_a_model_is_found_by_name_in_the_file_that_its_runs_depend_on():
    assert model_file("resnet8") == model_file("resnet110") == "focalcal/training/models/he_resnet.py"
    assert model_file("tree-lstm") == "focalcal/training/models/tree_lstm.py"
    timm = "timm:vit_tiny_patch16_224.augreg_in21k"
    assert find_model(timm).arguments == {"name": timm.removeprefix("timm:")}
    for broken in ("resnet51", "timm:", "timm:../x", "timm:resnet18/x"):
        with pytest.raises(UserError, match=f"unknown model '{broken}'; allowed: .*, mlp, .*timm:NAME"):
            find_model(broken)
