"""Every loss and every model by name, using only the standard library.

The workflow reads this module to check a config and to name paths; the implementations are in
`focalcal.training.losses` and `focalcal.training.models`. A new loss is one function there and one line in
`LOSSES`; a new model is one function, named in `BUILDERS` beside it, and one line in `MODELS`.
"""

import re
from dataclasses import dataclass

from focalcal.common.errors import UserError


@dataclass(frozen=True)
class LossKind:
    """What the workflow needs to know about one family of losses."""

    function: str
    """Name of the function in `focalcal.training.losses`."""
    description: str
    number: str | None = None
    """The meaning of the number at the end of the id: "gamma", "epsilon", or None if it has no number."""
    bounds: tuple[float, float] = (0.0, float("inf"))
    """The smallest allowed number and the exclusive upper bound."""
    risk_gamma: float | None = None
    """Gamma of the focal loss this family minimises if the id has none: 0 for proper losses."""
    gammas: tuple[float, ...] = ()
    """Gammas of the stages of a sample-dependent or scheduled loss."""
    reduction: str | None = None
    """The only reduction this loss is defined with; None leaves the choice to the recipe."""
    smoothable: bool = False
    """Whether `+ls-EPSILON` may follow the id."""


LOSSES = {
    "ce": LossKind("cross_entropy", "cross-entropy", risk_gamma=0.0),
    "focal": LossKind("focal", "focal loss with a fixed gamma", number="gamma", smoothable=True),
    "flsd-53": LossKind("focal_sample_dependent", "M20: gamma 5 for p < 0.2, else 3", gammas=(5.0, 3.0)),
    "flsd-532": LossKind(
        "focal_sample_dependent", "M20: gamma 5 for p < 0.2, 3 for p < 0.5, else 2", gammas=(5.0, 3.0, 2.0)
    ),
    "focal-sched-532": LossKind("focal_scheduled", "M20: gamma 5, then 3, then 2", gammas=(5.0, 3.0, 2.0)),
    "focal-sched-531": LossKind("focal_scheduled", "M20: gamma 5, then 3, then 1", gammas=(5.0, 3.0, 1.0)),
    "adafocal": LossKind("adafocal", "gamma of each confidence bin follows its calibration gap"),
    "brier": LossKind("brier_loss", "squared error of the probabilities", risk_gamma=0.0, reduction="mean"),
    "mmce": LossKind("mmce", "cross-entropy + MMCE, weighted, as in its paper"),
    "mmce-authors": LossKind("mmce_authors", "cross-entropy + MMCE, as in the released code"),
    "ls": LossKind(
        "label_smoothing", "cross-entropy on smoothed labels", "epsilon", (0.0, 1.0), risk_gamma=0.0
    ),
    "dual-focal": LossKind("dual_focal", "weight (1 - p_true + p_next)^gamma", number="gamma"),
    "inverse-focal": LossKind("inverse_focal", "weight (1 + p_true)^gamma", number="gamma"),
    "proper-focal": LossKind(
        "proper_focal", "the proper part of the focal loss (K24)", "gamma", (0.0, 20.0), risk_gamma=0.0
    ),
}

MODELS = {
    "mlp": "C21's three-layer perceptron, for features or small images",
    "cnn-small": "two convolution blocks, for small images",
    "resnet8": "He's CIFAR ResNet-8 (basic blocks, 16-32-64)",
    "resnet20": "He's CIFAR ResNet-20",
    "resnet44": "He's CIFAR ResNet-44",
    "resnet110": "He's CIFAR ResNet-110, 1.7 million parameters",
    "resnet50": "ResNet-50 with a 3 x 3 stem, for CIFAR and TinyImageNet (M20, K24)",
    "resnet110-bottleneck": "M20's ResNet-110: bottlenecks [3, 4, 26, 3] with a CIFAR stem",
    "wrn-26-10": "Wide-ResNet-26-10",
    "densenet121": "DenseNet-121 with a CIFAR stem",
    "gp-cnn": "M20's global-pooling CNN over word vectors, for texts",
    "tree-lstm": "binary Tree-LSTM over word vectors, for parse trees (Tai et al. 2015)",
}
_MODEL_INPUTS = {"mlp": ("features", "images"), "gp-cnn": ("tokens",), "tree-lstm": ("trees",)}
"""The kinds of inputs that a model takes; all others take images."""
FEATURE_MODELS = tuple(model for model, kinds in _MODEL_INPUTS.items() if "features" in kinds)
TIMM_PREFIX = "timm:"
TIMM_NAME = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)?")

_NUMBER = re.compile(r"(0|[1-9][0-9]*)(\.[0-9]*[1-9])?")
_SMOOTHING = "+ls-"


@dataclass(frozen=True)
class ParsedLoss:
    """The parts of a loss id."""

    id: str
    kind: str
    gamma: float | None = None
    """The number in the id of a loss with a gamma, else None."""
    epsilon: float = 0.0
    """Label smoothing; 0 for hard labels."""


def parse_loss(loss_id: str) -> ParsedLoss:
    """Return the parts of a loss id such as `focal-2`, `flsd-53`, `ls-0.05` or `focal-2+ls-0.1`."""
    base, plus, smoothing = loss_id.partition(_SMOOTHING)
    kind, number = _split_number(base, loss_id)
    family = LOSSES[kind]
    gamma = number if family.number == "gamma" else None
    if not plus:
        return ParsedLoss(loss_id, kind, gamma, number if family.number == "epsilon" else 0.0)
    if not family.smoothable:
        allowed = ", ".join(name for name, entry in LOSSES.items() if entry.smoothable)
        raise UserError(f"loss {loss_id!r}: {_SMOOTHING}EPSILON may only follow {allowed}")
    return ParsedLoss(loss_id, kind, gamma, _number(smoothing, LOSSES["ls"], loss_id))


def known_loss(loss_id: str) -> ParsedLoss | None:
    """Return the parts of a loss id; None for a loss that only the owner of imported logits knows."""
    try:
        return parse_loss(loss_id)
    except UserError:
        return None


def training_gamma(loss_id: str) -> float | None:
    """Return the gamma whose Psi maps this loss's risk minimiser to the posterior, None if none is known.

    0 (the identity) for strictly proper losses, gamma for focal losses (C21, Thm 11). With label smoothing
    the same Psi recovers the smoothed posterior, as in C21's LS paradigm.
    """
    parsed = known_loss(loss_id)
    if parsed is None:
        return None
    return parsed.gamma if parsed.kind == "focal" else LOSSES[parsed.kind].risk_gamma


def check_model(model_id: str) -> str:
    """Return `model_id`; raise UserError unless it is in `MODELS` or is `timm:NAME`."""
    if model_id in MODELS:
        return model_id
    if model_id.startswith(TIMM_PREFIX) and TIMM_NAME.fullmatch(model_id.removeprefix(TIMM_PREFIX)):
        return model_id
    raise UserError(f"unknown model {model_id!r}; allowed: {', '.join(MODELS)}, {TIMM_PREFIX}NAME")


def check_inputs(model_id: str, kind: str) -> None:
    """Raise UserError unless the model takes inputs of `kind`: images, features, tokens or trees."""
    taken = _MODEL_INPUTS.get(model_id, ("images",))
    if kind not in taken:
        fitting = [model for model in MODELS if kind in _MODEL_INPUTS.get(model, ("images",))]
        raise UserError(
            f"model {model_id!r} takes {' or '.join(taken)}, but the dataset has {kind}; "
            f"allowed there: {', '.join(fitting)}"
        )


def loss_grammar() -> str:
    """Return the allowed loss ids in one line, for messages: `ce, focal-GAMMA, ...`."""
    names = [
        name if entry.number is None else f"{name}-{entry.number.upper()}" for name, entry in LOSSES.items()
    ]
    smoothable = [f"{name}-GAMMA{_SMOOTHING}EPSILON" for name, entry in LOSSES.items() if entry.smoothable]
    return ", ".join(names + smoothable)


def _split_number(base: str, loss_id: str) -> tuple[str, float | None]:
    """Return the family of `base` and its number; the longest family name wins (`focal-sched-532`)."""
    if base in LOSSES and LOSSES[base].number is None:
        return base, None
    kind, _, digits = base.rpartition("-")
    if kind in LOSSES and LOSSES[kind].number is not None:
        return kind, _number(digits, LOSSES[kind], loss_id)
    raise UserError(f"unknown loss {loss_id!r}; allowed: {loss_grammar()}")


def _number(digits: str, family: LossKind, loss_id: str) -> float:
    """Return the number in an id; only its shortest spelling is accepted, so that one loss has one path."""
    if not _NUMBER.fullmatch(digits):
        raise UserError(
            f"loss {loss_id!r}: {digits!r} is not a plain number for {family.number} "
            "(write 2 or 0.5, not 2.0, .5 or 1e1)"
        )
    low, high = family.bounds
    if not low <= float(digits) < high:
        raise UserError(
            f"loss {loss_id!r}: {family.number} {digits} must be at least {low:g} and below {high:g}"
        )
    return float(digits)
