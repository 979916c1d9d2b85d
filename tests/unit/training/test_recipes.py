import math
from pathlib import Path

import pytest
import yaml

from focalcal.common.errors import UserError
from focalcal.training.recipes import (
    check_recipe,
    learning_rate,
    recipe_from_dict,
    spec_from_dict,
)

ROOT = Path(__file__).parents[3]
RECIPES = yaml.safe_load((ROOT / "configs" / "recipes.yaml").read_text("utf-8"))["recipes"]
MINIMAL = {"epochs": 10, "batch_size": 4, "learning_rate": 1.0}


def recipe(**changes):
    return recipe_from_dict({**MINIMAL, **changes})


def epoch_rates(name, steps_per_epoch=7):
    chosen = recipe_from_dict(RECIPES[name])
    return [learning_rate(chosen, epoch * steps_per_epoch, steps_per_epoch) for epoch in range(chosen.epochs)]


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_agrees_with_itself(name):
    check_recipe(recipe_from_dict(RECIPES[name]))


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


def test_a_spec_without_one_of_its_keys_is_refused():
    with pytest.raises(UserError, match=r"--spec must have the keys dataset, .*; 'seed' is missing"):
        spec_from_dict({"dataset": "gauss-3", "model": "mlp", "loss": "ce", "recipe": MINIMAL})
