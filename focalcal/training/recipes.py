"""How a network is trained: the recipe, its checks and its learning-rate curve; without torch."""

import json
import math
from dataclasses import dataclass, field, fields
from typing import Any

from focalcal.common.errors import UserError

CHOICES = {
    "optimizer": ("sgd", "adamw"),
    "schedule": ("constant", "steps", "cosine", "one-cycle"),
    "reduction": ("sum", "mean"),
    "precision": ("fp32", "bf16"),
    "device": ("auto", "cpu", "cuda"),
    "adafocal_split": ("val", "holdout"),
}
ASCENDING = ("milestones", "gamma_milestones", "gamma_thresholds")


@dataclass(frozen=True)
class AdaFocalSettings:
    """Constants of AdaFocal (Ghosh et al. 2022), as K24 used them."""

    bins: int = 15
    rate: float = 1.0
    """Lambda: how fast gamma follows the gap."""
    start: float = 1.0
    switch: float = 0.2
    """Where |gamma| falls below this, the bin changes between focal and inverse focal loss."""
    low: float = -2.0
    high: float = 20.0


@dataclass(frozen=True)
class Recipe:
    """One way to train; `schemas/recipe.schema.yaml` describes every field."""

    epochs: int
    batch_size: int
    learning_rate: float
    optimizer: str = "sgd"
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 0.0
    schedule: str = "constant"
    milestones: tuple[int, ...] = ()
    decay: float = 0.1
    warmup: float = 0.3
    reduction: str = "mean"
    clip_norm: float | None = None
    crop_padding: int = 0
    flip: bool = False
    channels_last: bool = True
    precision: str = "fp32"
    tf32: bool = False
    compile: bool = False
    deterministic: bool = True
    device: str = "auto"
    threads: int = 1
    evaluation_batch_size: int = 1024
    evaluate_every: int = 1
    history_test: bool = False
    snapshot_epochs: tuple[int, ...] = ()
    gamma_thresholds: tuple[float, ...] = (0.2, 0.5)
    gamma_milestones: tuple[int, ...] = (100, 250)
    adafocal: AdaFocalSettings = field(default_factory=AdaFocalSettings)
    adafocal_split: str = "val"
    holdout_fraction: float = 0.1


def recipe_from_dict(values: dict[str, Any]) -> Recipe:
    """Return the recipe of a config mapping; UserError names the key, its value and what is allowed."""
    known = {entry.name for entry in fields(Recipe)}
    if unknown := sorted(set(values) - known):
        raise UserError(f"recipe: unknown key {unknown[0]!r}; allowed: {', '.join(sorted(known))}")
    values = dict(values)
    if "adafocal" in values:
        values["adafocal"] = AdaFocalSettings(**values["adafocal"])
    for name in ("milestones", "snapshot_epochs", "gamma_thresholds", "gamma_milestones"):
        if name in values:
            values[name] = tuple(values[name])
    try:
        recipe = Recipe(**values)
    except TypeError as error:
        raise UserError(f"recipe: {error}") from None
    _check(recipe)
    return recipe


def learning_rate(recipe: Recipe, step: int, steps_per_epoch: int) -> float:
    """Return the learning rate of optimiser step `step`, counted from 0 over the whole training.

    `steps` multiplies by `decay` from each milestone epoch on. `cosine` falls from the peak to 0. `one-cycle`
    rises along a cosine from peak / 25 to the peak over the share `warmup` of all steps, then falls to 0.
    """
    peak = recipe.learning_rate
    if recipe.schedule == "constant":
        return peak
    if recipe.schedule == "steps":
        epoch = step // steps_per_epoch
        return peak * recipe.decay ** sum(epoch >= milestone for milestone in recipe.milestones)
    progress = step / max(1, recipe.epochs * steps_per_epoch)
    if recipe.schedule == "cosine":
        return peak * _half_cosine(progress)
    if progress < recipe.warmup:
        return peak - (peak - peak / 25) * _half_cosine(progress / recipe.warmup)
    return peak * _half_cosine((progress - recipe.warmup) / (1 - recipe.warmup))


def _half_cosine(progress: float) -> float:
    """Return the cosine that falls from 1 at progress 0 to 0 at progress 1."""
    return 0.5 * (1 + math.cos(math.pi * progress))


def _check(recipe: Recipe) -> None:
    for name, allowed in CHOICES.items():
        _require(getattr(recipe, name) in allowed, name, getattr(recipe, name), ", ".join(allowed))
    for name, (is_allowed, allowed) in _BOUNDS.items():
        value = getattr(recipe, name)
        _require(value is None or is_allowed(value), name, value, allowed)
    for name in ASCENDING:
        values = list(getattr(recipe, name))
        _require(values == sorted(set(values)), name, values, "numbers that increase")
    needs_cuda = recipe.precision != "fp32" or recipe.compile
    allowed = "auto or cuda with bf16 or compile; on a CPU leave out precision and compile"
    _require(recipe.device != "cpu" or not needs_cuda, "device", recipe.device, allowed)
    low, start, high = recipe.adafocal.low, recipe.adafocal.start, recipe.adafocal.high
    _require(low <= high, "adafocal.low", low, f"at most adafocal.high, which is {high}")
    allowed = f"from adafocal.low, which is {low}, to adafocal.high, which is {high}"
    _require(low <= start <= high, "adafocal.start", start, allowed)


def _require(is_allowed: bool, name: str, value: object, allowed: str) -> None:
    if not is_allowed:
        raise UserError(f"recipe.{name} is {json.dumps(value)}; allowed: {allowed}")


_POSITIVE = (lambda value: 0 < value < math.inf, "positive and finite numbers")
_AT_LEAST_ONE = (lambda value: value >= 1, "at least 1")
_NOT_NEGATIVE = (lambda value: 0 <= value < math.inf, "finite numbers from 0 on")
_SHARE = (lambda value: 0 <= value < 1, "at least 0 and below 1")
_BOUNDS = {
    "epochs": _AT_LEAST_ONE,
    "batch_size": _AT_LEAST_ONE,
    "threads": _AT_LEAST_ONE,
    "evaluation_batch_size": _AT_LEAST_ONE,
    "evaluate_every": _AT_LEAST_ONE,
    "learning_rate": _POSITIVE,
    "decay": _POSITIVE,
    "clip_norm": _POSITIVE,
    "weight_decay": _NOT_NEGATIVE,
    "crop_padding": _NOT_NEGATIVE,
    "momentum": _SHARE,
    "warmup": _SHARE,
    "holdout_fraction": (lambda value: 0 < value < 1, "between 0 and 1, both excluded"),
}
