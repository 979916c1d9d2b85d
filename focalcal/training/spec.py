"""What determines a training run."""

import json
from dataclasses import dataclass

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


def spec_from_json(text: str) -> RunSpec:
    """Return the run that a JSON object with the keys dataset, model, loss, seed and recipe describes."""
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"--spec is not JSON: {error}") from None
    missing = [key for key in _KEYS if not isinstance(values, dict) or key not in values]
    if missing:
        raise UserError(
            f"--spec must be an object with the keys {', '.join(_KEYS)}; {missing[0]!r} is missing"
        )
    return RunSpec(
        dataset=values["dataset"],
        model=check_model(values["model"]),
        loss=parse_loss(values["loss"]).id,
        seed=values["seed"],
        recipe=recipe_from_dict(values["recipe"]),
    )
