from dataclasses import replace

import pytest

from focalcal.training.plan import DatasetSize, PlanRow, dataset_size, make_plan, plan_text
from focalcal.training.recipes import Recipe

TOY = DatasetSize(train=1000, val=300, test=100, classes=10, shape=(16,))
LONG = Recipe(epochs=20, batch_size=1, learning_rate=1)
RECIPES = {"long": LONG, "short": replace(LONG, epochs=2)}


def test_costs_by_hand():
    runs = [("toy", "mlp", "long")] * 3 + [("toy", "mlp", "short")]
    rows = make_plan(runs, {"toy": TOY}, RECIPES, {"mlp": 100.0, "default": 1.0})
    parameters = 16 * 256 + 256 + 256 * 256 + 256 + 256 * 10 + 10
    assert [(row.recipe, row.runs, row.epochs, row.images) for row in rows] == [
        ("long", 3, 60, 60_000),
        ("short", 1, 2, 2_000),
    ]
    evaluated = 3 * (20 * 300 + 300 + 100)
    assert rows[0].gpu_hours == pytest.approx((60_000 + evaluated / 3) / 100 / 3600)
    assert rows[0].disk_bytes == 3 * (4 * parameters + 400 * 48 + 20 * 900)
    assert rows[1].gpu_hours == pytest.approx((2_000 + 1_000 / 3) / 100 / 3600)


def test_the_test_set_and_rare_evaluations_count():
    recipe = replace(LONG, history_test=True, evaluate_every=3)
    (row,) = make_plan([("toy", "mlp", "r")], {"toy": TOY}, {"r": recipe}, {"default": 50.0})
    assert row.gpu_hours == pytest.approx((20_000 + (7 * 400 + 400) / 3) / 50 / 3600)


def test_a_users_dataset_has_an_unknown_size():
    assert dataset_size({"entry": {"kind": "folder"}, "parameters": {"folder": "x"}}) is None
    rows = make_plan([("mine", "resnet50", "long")], {"mine": None}, RECIPES, {"default": 1.0})
    assert rows == [PlanRow("mine", "resnet50", "long", 1, 20, None, None, None)]
    text = plan_text(rows, {"mine": None})
    assert "20       ?           ?        ?" in text
    assert "(without the rows marked ?)" in text


def test_text_has_totals_and_says_what_is_estimated():
    rows = [
        PlanRow("cifar10", "resnet50", "k", 40, 14_000, 630_000_000, 100.25, 4_000_000_000),
        PlanRow("toy", "mlp", "s", 2, 4, 4_000, 0.01, 1_000_000),
    ]
    sizes = {"cifar10": DatasetSize(45000, 5000, 10000, 10, (3, 32, 32)), "toy": TOY}
    lines = plan_text(rows, sizes).splitlines()
    assert lines[1].split() == ["cifar10", "resnet50", "k", "40", "14,000", "630,000,000", "100.2", "4,000"]
    assert lines[4] == "86 jobs: 2 datasets, 42 trainings, 42 sets of logits"
    assert lines[5] == "14,004 epochs, 630,004,000 training images"
    assert lines[6] == "100.3 GPU-hours*, 4,186 MB of disk, 185 MB of it data"
    assert lines[7].startswith("* estimates from plan.images_per_second")
