import pytest
import torch
from torch import nn

from focalcal.common import extensions
from focalcal.common.errors import UserError
from focalcal.training import extension_losses
from focalcal.training.catalogue import LOSSES, OWN_LOSSES, LossKind
from focalcal.training.models import build, extension_models
from focalcal.training.models.catalogue import MODELS, OWN_MODULE, ModelKind
from focalcal.training.objective import TrainingObjective
from focalcal.training.recipes import Recipe, recipe_from_dict
from tests.project import merged_config


@pytest.fixture
def recipe() -> Recipe:
    return recipe_from_dict(merged_config()["recipes"]["quickstart"])


@pytest.fixture
def use_loss(monkeypatch):
    """Return a function that makes a function the extension loss `mine`."""

    def used(function):
        monkeypatch.setattr(extension_losses, "load_extension", lambda *_: function)
        monkeypatch.setattr(extensions, "extension_names", lambda _: ["mine"])
        kind = LossKind(OWN_LOSSES, "mine", "own", number="gamma", number_is_optional=True)
        monkeypatch.setitem(LOSSES, "mine", kind)

    return used


def log_p(logits, labels):
    return torch.log_softmax(logits, dim=1).gather(1, labels[:, None])[:, 0]


def test_the_id_carries_gamma_or_not(use_loss, recipe):
    use_loss(lambda logits, labels, gamma=None: -log_p(logits, labels) * (1 if gamma is None else gamma))
    logits, labels = torch.randn(5, 3), torch.tensor([0, 1, 2, 0, 1])
    plain = TrainingObjective("mine", recipe).values(logits, labels)
    scaled = TrainingObjective("mine-2.5", recipe).values(logits, labels)
    torch.testing.assert_close(plain, nn.functional.cross_entropy(logits, labels, reduction="none"))
    torch.testing.assert_close(scaled, 2.5 * plain)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda z, y: -log_p(z, y).mean(), r"loss returned \(\); allowed: a tensor \(6,\)"),
        (lambda z, _: z, r"loss returned \(6, 3\); allowed: a tensor \(6,\)"),
        (lambda _z, _y: 1.0, "loss returned float; allowed: a tensor"),
        (lambda z, y: -log_p(z, y).detach(), "loss has no gradient by the logits"),
        (lambda z, y: log_p(z, y) * float("nan"), "loss or its gradient is NaN or infinite"),
        (lambda z, _: (z - z).sqrt().sum(dim=1), "gradient is NaN"),
    ],
)
def test_a_wrong_loss_is_refused_in_one_line_at_its_first_use(function, message, use_loss, recipe):
    use_loss(lambda logits, labels, gamma: function(logits, labels))  # noqa: ARG005
    objective = TrainingObjective("mine", recipe)
    with pytest.raises(UserError, match=rf"^extensions/losses/mine\.py: .*{message}") as refused:
        objective.values(torch.zeros(4, 3), torch.zeros(4, dtype=torch.int64))
    assert "\n" not in str(refused.value)


@pytest.fixture
def use_model(monkeypatch):
    """Return a function that makes a function the extension model `mine`."""

    def used(function):
        monkeypatch.setattr(extension_models, "load_extension", lambda *_: function)
        kind = ModelKind(OWN_MODULE, "own_model", "own", ("features", "images"), {"name": "mine"})
        monkeypatch.setitem(MODELS, "mine", kind)

    return used


def test_a_model_takes_features_and_images(use_model):
    use_model(lambda _shape, classes: nn.Sequential(nn.Flatten(), nn.LazyLinear(classes)))
    for shape in ((7,), (3, 8, 8)):
        model = build.build_model("mine", shape, 4)
        assert model(torch.zeros(5, *shape)).shape == (5, 4)
        assert model.training


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda _shape, _classes: "network", "build returned str; allowed: a torch.nn.Module"),
        (
            lambda shape, classes: nn.Linear(shape[0], classes + 1),
            r"returns \(2, 4\); allowed: logits \(2, 3\)",
        ),
        (lambda shape, classes: nn.LSTM(shape[0], classes), "returns tuple; allowed: logits"),
    ],
)
def test_a_wrong_model_is_refused_in_one_line(function, message, use_model):
    use_model(function)
    with pytest.raises(UserError, match=rf"^extensions/models/mine\.py: .*{message}"):
        build.build_model("mine", (5,), 3)
