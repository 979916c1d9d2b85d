import dataclasses
import math
from pathlib import Path

import jsonschema
import pytest
import yaml

from focalcal.common.errors import UserError
from focalcal.data import registry
from focalcal.training.recipes import Recipe, learning_rate, recipe_from_dict
from focalcal.training.spec import spec_from_json

ROOT = Path(__file__).parents[3]
SCHEMA = yaml.safe_load((ROOT / "schemas" / "recipe.schema.yaml").read_text("utf-8"))
RECIPES = yaml.safe_load((ROOT / "configs" / "recipes.yaml").read_text("utf-8"))["recipes"]
MINIMAL = {"epochs": 10, "batch_size": 4, "learning_rate": 1.0}


def recipe(**changes):
    return recipe_from_dict({**MINIMAL, **changes})


def epoch_rates(name, steps_per_epoch=7):
    chosen = recipe_from_dict(RECIPES[name])
    return [learning_rate(chosen, epoch * steps_per_epoch, steps_per_epoch) for epoch in range(chosen.epochs)]


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_fits_the_schema_and_the_checks(name):
    jsonschema.validate(RECIPES[name], SCHEMA)
    recipe_from_dict(RECIPES[name])


def test_schema_and_dataclass_agree_on_keys_and_defaults():
    assert set(SCHEMA["properties"]) == {entry.name for entry in dataclasses.fields(Recipe)}
    defaults = dataclasses.asdict(recipe())
    stated = {name: entry["default"] for name, entry in SCHEMA["properties"].items() if "default" in entry}
    listed = {name: list(value) if isinstance(value, tuple) else value for name, value in defaults.items()}
    assert {name: listed[name] for name in stated} == stated
    adafocal = SCHEMA["properties"]["adafocal"]["properties"]
    assert {name: entry["default"] for name, entry in adafocal.items()} == defaults["adafocal"]


@pytest.mark.parametrize(
    ("name", "stages"),
    [
        ("komisarenko2024", [(150, 0.1), (100, 0.01), (100, 0.001)]),
        ("mukhoti2020", [(150, 0.1), (100, 0.01), (100, 0.001)]),
        ("komisarenko2024-tinyimagenet", [(40, 0.1), (20, 0.01), (40, 0.001)]),
        ("charoenphakdee2021", [(80, 0.1), (70, 0.01), (50, 0.001)]),
        ("charoenphakdee2021-svhn", [(25, 0.1), (15, 0.01), (10, 0.001)]),
    ],
)
def test_learning_rates_of_the_papers(name, stages):
    expected = [rate for epochs, rate in stages for _ in range(epochs)]
    assert epoch_rates(name) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["quickstart", "recovery", "cpu"])
def test_one_cycle_rises_to_its_peak_and_falls_to_zero(name):
    chosen = recipe_from_dict(RECIPES[name])
    rates = [learning_rate(chosen, step, 10) for step in range(chosen.epochs * 10)]
    peak = rates.index(max(rates))
    assert rates[0] == pytest.approx(chosen.learning_rate / 25)
    assert rates[peak] == pytest.approx(chosen.learning_rate)
    assert peak == round(0.3 * len(rates))
    assert rates[:peak] == sorted(rates[:peak])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)
    assert 0 <= rates[-1] < 1e-3 * chosen.learning_rate


def test_other_schedules_by_hand():
    assert learning_rate(recipe(), 37, 4) == 1.0
    cosine = recipe(schedule="cosine")
    expected = [1.0, 0.5 * (1 + math.cos(math.pi / 4)), 0.5, 0.5 * (1 + math.cos(3 * math.pi / 4))]
    assert [learning_rate(cosine, step, 4) for step in (0, 10, 20, 30)] == pytest.approx(expected)
    assert learning_rate(recipe(schedule="one-cycle", warmup=0.0), 0, 4) == 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epoch": 3}, r"recipe: unknown key 'epoch'; allowed: adafocal, adafocal_split, .*"),
        ({"optimizer": "lion"}, 'recipe.optimizer is "lion"; allowed: sgd, adamw'),
        ({"epochs": 0}, "recipe.epochs is 0; allowed: at least 1"),
        ({"learning_rate": -1.0}, "recipe.learning_rate is -1.0; allowed: positive and finite"),
        ({"learning_rate": math.nan}, "recipe.learning_rate is NaN; allowed: positive and finite"),
        ({"warmup": 1.0}, "recipe.warmup is 1.0; allowed: at least 0 and below 1"),
        ({"clip_norm": 0.0}, "recipe.clip_norm is 0.0; allowed: positive and finite"),
        ({"holdout_fraction": 1.0}, "recipe.holdout_fraction is 1.0; allowed: between 0 and 1"),
        ({"device": "cpu", "precision": "bf16"}, 'recipe.device is "cpu"; allowed: auto or cuda with bf16'),
        ({"device": "cpu", "compile": True}, 'recipe.device is "cpu"; allowed: auto or cuda with bf16'),
        ({"adafocal": {"low": 30}}, r"recipe.adafocal.low is 30; allowed: at most .* which is 20"),
        ({"milestones": [250, 150]}, r"recipe.milestones is \[250, 150\]; allowed: numbers that increase"),
    ],
)
def test_broken_recipes_are_refused(changes, message):
    with pytest.raises(UserError, match=message):
        recipe(**changes)


def test_missing_keys_are_named():
    with pytest.raises(UserError, match=r"recipe: .*missing.*'learning_rate'"):
        recipe_from_dict({"epochs": 1, "batch_size": 1})


def test_broken_specs_are_refused():
    with pytest.raises(UserError, match="--spec is not JSON: "):
        spec_from_json("{")
    with pytest.raises(
        UserError, match=r"--spec must be an object with the keys dataset, .*; 'dataset' is missing"
    ):
        spec_from_json("[]")


@pytest.mark.parametrize("paper", ["komisarenko2024", "mukhoti2020"])
def test_evaluation_of_large_networks_needs_half_of_the_memory_that_its_job_asks_for(paper):
    # rules/training.smk asks for 4,000 MB. The largest activations of these networks grow with the image's
    # area: measured on ResNet-50, 13.4 MB per image of 64 x 64.
    for block in yaml.safe_load((ROOT / "configs" / f"{paper}.yaml").read_text("utf-8"))["runs"]:
        batch = recipe_from_dict(RECIPES[block["recipe"]]).evaluation_batch_size
        for dataset in block["datasets"]:
            side = registry.load_entry(dataset)["shape"][1]
            assert 13.4 * (side / 64) ** 2 * batch < 2000, (block["recipe"], dataset)
