"""Which runs a statement is about: how they were trained, measured and searched, and how many seeds."""

import pytest

from focalcal.reporting.claims.settings import Setting, outside_reasons

NETWORKS = Setting(
    "P networks",
    "networks that fit",
    losses=["ce", "focal-1"],
    convolutional=True,
    largest_training_error=0.05,
    imported_on=["cifar10"],
    bins=15,
    temperatures=[0.01, 5, 0.01],
    gammas=[-0.5, 1],
)
TABLE = Setting("P table", "the paper's", models=["resnet50"], epochs={"cifar10": 350}, seeds=2)


def run(**changes):
    """Return a row of runs.csv that is inside `NETWORKS` and, with a second seed, inside `TABLE`."""
    row = {"dataset": "cifar10", "model": "resnet50", "loss": "ce", "seed": "1", "epochs": "350"}
    row |= {"imported": "", "train_error": "0.001", "bins": "15", "recovery_bins": "10"}
    return row | {"temperature_grid": "0.01 5 0.01", "gamma_grid": "-0.5 1"} | changes


def reasons(setting, *runs):
    return [found for _, found in outside_reasons(setting, runs)]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"train_error": "0.05"}, []),
        ({"train_error": "0.16"}, ["training error above 5 %"]),
        ({"train_error": ""}, ["training error unknown"]),
        ({"model": "mlp"}, ["not a convolutional network"]),
        ({"model": "tree-lstm"}, ["not a convolutional network"]),
        ({"model": "gp-cnn"}, []),
        (
            {"model": "mlp", "train_error": "0.16"},
            ["not a convolutional network", "training error above 5 %"],
        ),
        ({"bins": "10"}, ["10 bins, in the paper 15"]),
        ({"imported": "yes", "train_error": "", "epochs": ""}, []),
        ({"imported": "yes", "dataset": "mine"}, ["trained elsewhere in an unknown way"]),
        ({"imported": "yes", "model": "mlp"}, ["not a convolutional network"]),
    ],
)
def test_networks_that_fit_their_training_set(changes, expected):
    assert reasons(NETWORKS, run(**changes)) == [expected]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"epochs": "349"}, ["349 epochs, in the paper 350"]),
        ({"dataset": "svhn"}, ["not on cifar10"]),
        ({"model": "resnet8"}, ["not one of resnet50"]),
        ({"epochs": "", "imported": "yes"}, []),
    ],
)
def test_the_papers_own_experiment(changes, expected):
    both = [run(**changes), run(seed="2", **changes)]
    assert reasons(TABLE, *both) == [expected, expected]


def test_seeds_are_counted_inside_the_setting():
    assert reasons(TABLE, run(), run(seed="2")) == [[], []]
    assert reasons(TABLE, run(), run(seed="2", epochs="10")) == [
        ["1 of 2 seeds"],
        ["10 epochs, in the paper 350"],
    ]
    assert reasons(TABLE, run(), run(loss="focal-1", seed="2")) == [["1 of 2 seeds"]] * 2


def test_grids():
    assert NETWORKS.grid_reasons(run()) == []
    other = run(temperature_grid="0.1 10 0.1", gamma_grid="")
    assert NETWORKS.grid_reasons(other) == [
        "grid of T 0.1 10 0.1, in the paper 0.01 5 0.01",
        "grid of gamma unknown, in the paper -0.5 1",
    ]
    assert TABLE.grid_reasons(other) == []
    assert reasons(NETWORKS, other) == [[]], "scores as trained need no grid"
