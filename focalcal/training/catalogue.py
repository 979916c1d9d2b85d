"""Every loss by name, using only the standard library.

The workflow reads this module to check a config and to name paths. A loss is a function in a file of this
folder, with a declaration above it that states every fact the workflow needs; the declarations are read
without importing torch. A run depends on the file of its own loss, so a loss in a new file trains no other
run again.
"""

import difflib
import math
import re
from dataclasses import dataclass
from pathlib import Path

from focalcal.common.declarations import declare, read_declarations
from focalcal.common.errors import UserError
from focalcal.common.extensions import extension_code, extension_file, extension_names
from focalcal.training.models.catalogue import is_own_model

OWN_LOSSES = "focalcal.training.extension_losses"
"""Module of the losses that the user wrote."""
loss = declare
"""Declares a function `(logits, labels, context)` as a loss; the facts are `id` and fields of `LossKind`."""


@dataclass(frozen=True)
class LossKind:
    """What the workflow needs to know about one family of losses."""

    module: str
    """Dotted name of the module that declares it."""
    function: str
    """Name of its function there."""
    description: str
    number: str | None = None
    """The meaning of the number at the end of the id, such as "gamma"; None if it has no number."""
    number_is_optional: bool = False
    """Whether the id may lack its number."""
    bounds: tuple[float, float] = (0.0, float("inf"))
    """The smallest allowed number and the exclusive upper bound."""
    risk_gamma: float | None = None
    """Gamma of the focal loss this family minimises if the id has none: 0 for proper losses."""
    is_focal: bool = False
    """Whether it is the focal loss of the id's gamma, so that Psi of that gamma recovers the posterior."""
    gammas: tuple[float, ...] = ()
    """Gammas of the stages of a sample-dependent or scheduled loss."""
    thresholds: tuple[float, ...] = ()
    """True-class probabilities at which a sample-dependent gamma changes."""
    has_steps: bool = False
    """Whether the id lists gammas with thresholds between them, as in `flsd-5-0.2-3`."""
    reduction: str | None = None
    """The only reduction this loss is defined with; None leaves the choice to the recipe."""
    smoothable: bool = False
    """Whether `+ls-EPSILON` may follow the id."""
    state: str | None = None
    """Name of the class, beside the function, of what an adaptive loss keeps from epoch to epoch."""


_FOLDER = Path(__file__).parent
LOSSES = {
    found.facts["id"]: LossKind(
        module=f"focalcal.training.{found.path.stem}",
        function=found.name,
        **{name: value for name, value in found.facts.items() if name != "id"},
    )
    for found in read_declarations(_FOLDER, "loss")
}
"""Every family of losses by its id, in the order of files and declarations; then the user's own."""

_NUMBER = re.compile(r"(0|[1-9][0-9]{0,2})(\.[0-9]{0,5}[1-9])?")
_LABEL_SMOOTHING = "ls"
_SMOOTHING = f"+{_LABEL_SMOOTHING}-"


@dataclass(frozen=True)
class ParsedLoss:
    """The parts of a loss id."""

    id: str
    kind: str
    number: float | None = None
    """The number in the id; its family says what it means."""
    gamma: float | None = None
    """The fixed gamma of the loss, None if it has none."""
    epsilon: float = 0.0
    """Label smoothing; 0 for hard labels."""
    gammas: tuple[float, ...] = ()
    """Gammas of the stages of a sample-dependent or scheduled loss."""
    thresholds: tuple[float, ...] = ()
    """True-class probabilities at which a sample-dependent gamma changes."""


def parse_loss(loss_id: str) -> ParsedLoss:
    """Return the parts of a loss id such as `focal-2`, `flsd-5-0.2-3`, `ls-0.05` or `focal-2+ls-0.1`."""
    base, plus, smoothing = loss_id.partition(_SMOOTHING)
    kind, numbers = _split_numbers(base, loss_id)
    family = LOSSES[kind]
    if plus and not family.smoothable:
        allowed = ", ".join(name for name, entry in LOSSES.items() if entry.smoothable)
        raise UserError(f"loss {loss_id!r}: {_SMOOTHING}EPSILON may only follow {allowed}")
    if family.has_steps:
        return ParsedLoss(loss_id, kind, gammas=numbers[0::2], thresholds=numbers[1::2])
    number = numbers[0] if numbers else None
    gamma = number if family.number == "gamma" else None
    if family.number == "p0":
        gamma = gamma_of_crossing(number)
    epsilon = number if kind == _LABEL_SMOOTHING else 0.0
    if plus:
        epsilon = _number(smoothing, LOSSES[_LABEL_SMOOTHING], loss_id)
    return ParsedLoss(loss_id, kind, number, gamma, epsilon, family.gammas, family.thresholds)


def gamma_of_crossing(p0: float) -> float:
    """Return the gamma > 0 whose focal loss has cross-entropy's gradient at p0, 0 < p0 < 1/2 (M20 Prop. 2).

    `theory.thresholds.gamma_star` evaluates the closed form, which needs SciPy; this bisection does not.
    """
    log_rest, ratio = math.log1p(-p0), -p0 * math.log(p0) / (1 - p0)
    low, high = 0.0, 2.0
    while log_rest + math.log1p(high * ratio) / high > 0:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if log_rest + math.log1p(middle * ratio) / middle > 0 else (low, middle)
    return high


def loss_file(loss_id: str) -> str:
    """Return the path, from the root of the repository, of the file that declares a loss."""
    return f"{LOSSES[parse_loss(loss_id).kind].module.replace('.', '/')}.py"


def known_loss(loss_id: str) -> ParsedLoss | None:
    """Return the parts of a loss id; None for a loss that only the owner of imported logits knows."""
    try:
        return parse_loss(loss_id)
    except UserError:
        return None


def likely_loss(text: str) -> str:
    """Return the loss id that an unknown one probably stands for, as `FL-3` for focal-3, or ""."""
    found = re.fullmatch(r"(.*?)[ _-]*(\d[\d.]*)?", text.strip().lower())
    name, number = found.groups() if found else ("", None)
    name = {"fl": "focal", "crossentropy": "ce", "cross-entropy": "ce"}.get(name, name)
    kinds = difflib.get_close_matches(name, LOSSES, n=1, cutoff=0.8)
    if not kinds or LOSSES[kinds[0]].has_steps:
        return ""
    family = LOSSES[kinds[0]]
    fits = family.number is not None if number else family.number is None or family.number_is_optional
    meant = f"{kinds[0]}-{number}" if number else kinds[0]
    return meant if fits and meant != text else ""


def training_gamma(loss_id: str) -> float | None:
    """Return the gamma whose Psi maps this loss's risk minimiser to the posterior, None if none is known.

    0 (the identity) for strictly proper losses, gamma for focal losses (C21, Thm 11). With label smoothing
    the same Psi recovers the smoothed posterior, as in C21's LS paradigm.
    """
    parsed = known_loss(loss_id)
    if parsed is None:
        return None
    family = LOSSES[parsed.kind]
    return parsed.gamma if family.is_focal else family.risk_gamma


def is_own_loss(kind: str) -> bool:
    """Return whether a family of losses is one that the user wrote."""
    return kind in LOSSES and LOSSES[kind].module == OWN_LOSSES


def extension_digests_of_run(model_id: str, loss_id: str, root: Path) -> list[str]:
    """Return the digests of the user's own code that a run is trained with, if any."""
    used = [("models", model_id)] if is_own_model(model_id) else []
    kind = parse_loss(loss_id).kind
    used += [("losses", kind)] if is_own_loss(kind) else []
    return sorted({digest for kind, name in used for digest in extension_code(kind, name, root)})


def loss_grammar() -> str:
    """Return the allowed loss ids in one line, for messages: `ce, focal-GAMMA, ...`."""
    return ", ".join([loss_spelling(name, entry) for name, entry in LOSSES.items()] + smoothed_spellings())


def smoothed_spellings() -> list[str]:
    """Return how the losses are written that are combined with label smoothing."""
    return [f"{name}-GAMMA{_SMOOTHING}EPSILON" for name, entry in LOSSES.items() if entry.smoothable]


def loss_spelling(name: str, family: LossKind) -> str:
    """Return how the ids of a family are written."""
    if family.has_steps:
        return f"{name}-GAMMA-P-GAMMA..."
    if family.number is None:
        return name
    return (
        f"{name}[-{family.number.upper()}]"
        if family.number_is_optional
        else f"{name}-{family.number.upper()}"
    )


def _split_numbers(base: str, loss_id: str) -> tuple[str, tuple[float, ...]]:
    """Return the family of `base` and its numbers; the longest family name wins (`focal-sched-532`)."""
    family = LOSSES.get(base)
    if family and (family.number_is_optional or family.number is None) and not family.has_steps:
        return base, ()
    kind, _, digits = base.rpartition("-")
    if kind in LOSSES and LOSSES[kind].number is not None:
        return kind, (_number(digits, LOSSES[kind], loss_id),)
    kind, *parts = base.split("-")
    if kind in LOSSES and LOSSES[kind].has_steps and len(parts) > 1:
        return kind, _gamma_steps(parts, loss_id)
    meant = likely_loss(loss_id)
    hint = f"; did you mean {meant!r}?" if meant else ""
    raise UserError(f"unknown loss {loss_id!r}; allowed: {loss_grammar()}{hint}")


def _gamma_steps(parts: list[str], loss_id: str) -> tuple[float, ...]:
    """Return the gammas of an id and the thresholds between them; raise UserError if they are not."""
    numbers = tuple(_plain_number(part, "a gamma or threshold", loss_id) for part in parts)
    gammas, thresholds = numbers[0::2], numbers[1::2]
    if len(numbers) % 2 == 0 or list(thresholds) != sorted({*thresholds} - {0.0}) or thresholds[-1] >= 1:
        raise UserError(
            f"loss {loss_id!r}: between each two gammas stands the probability at which the second begins; "
            "allowed: probabilities that increase from above 0 to below 1, such as flsd-5-0.2-3"
        )
    for name, family in LOSSES.items():
        if family.thresholds and (family.gammas, family.thresholds) == (gammas, thresholds):
            raise UserError(f"loss {loss_id!r} is called {name!r}; write that, so that one loss has one path")
    return numbers


def _number(digits: str, family: LossKind, loss_id: str) -> float:
    """Return the number in an id; raise UserError unless it is within its family's bounds."""
    number = _plain_number(digits, str(family.number), loss_id)
    low, high = family.bounds
    if not low <= number < high:
        raise UserError(
            f"loss {loss_id!r}: {family.number} {digits} must be at least {low:g} and below {high:g}"
        )
    return number


def _plain_number(digits: str, meaning: str, loss_id: str) -> float:
    """Return a number of an id; only its shortest spelling is accepted, so that one loss has one path."""
    if not _NUMBER.fullmatch(digits):
        raise UserError(
            f"loss {loss_id!r}: {digits!r} is not a plain number below 1000 for {meaning} "
            "(write 2 or 0.5, not 2.0, .5 or 1e1, and at most six decimals)"
        )
    return float(digits)


def _add_own_losses() -> None:
    """Add the user's own losses, except those whose name is the id or the family of another loss."""
    for name in extension_names("losses"):
        if name not in LOSSES and known_loss(name) is None:
            description = f"your own, {extension_file('losses', name)}"
            LOSSES[name] = LossKind(OWN_LOSSES, name, description, number="gamma", number_is_optional=True)


_add_own_losses()
