"""What determines a training run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from focalcal.common.errors import UserError
from focalcal.training.catalogue import check_model, parse_loss
from focalcal.training.recipes import Recipe, recipe_from_dict

_KEYS = ("dataset", "model", "loss", "seed", "recipe")


@dataclass(frozen=True)
class RunSpec:
    """One dataset, model, loss, seed and recipe."""

    dataset: str
    model: str
    loss: str
    seed: int
    recipe: Recipe


def spec_from_dict(values: Mapping[str, Any]) -> RunSpec:
    """Return the run that a mapping with the keys dataset, model, loss, seed and recipe describes."""
    missing = [key for key in _KEYS if key not in values]
    if missing:
        raise UserError(f"--spec must have the keys {', '.join(_KEYS)}; {missing[0]!r} is missing")
    return RunSpec(
        dataset=values["dataset"],
        model=check_model(values["model"]),
        loss=parse_loss(values["loss"]).id,
        seed=values["seed"],
        recipe=recipe_from_dict(values["recipe"]),
    )
