import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from focalcal.data import registry
from focalcal.reporting import recovery_layout

SWEEP = Path(__file__).parents[3] / "configs" / "recovery-sweep.yaml"


class FakeGrid:
    def __init__(self, runs, settings):
        self._settings = settings
        self.datasets = sorted({run.dataset for run in runs if not run.imported})

    def data_spec(self, dataset):
        return registry.job_spec(dataset, self._settings.get(dataset))

    def recovery_spec(self, run):
        return {"run": {"loss": run.loss, "gamma": None}, "bins": 10}


def run_of(dataset, model="mlp", loss="ce", seed=1, *, imported=False):
    path = f"{dataset}/{model}/{loss}/seed{seed}"
    return SimpleNamespace(dataset=dataset, model=model, loss=loss, seed=seed, path=path, imported=imported)


def plan_of(runs, settings=None, human=None):
    settings = settings or {}
    section = {"bins": 10, "human_labels": human or {}}
    return recovery_layout.Plan(FakeGrid(runs, settings), runs, section, settings)


def names(products):
    return [product.name for product in products]


def test_products_follow_the_runs():
    plan = plan_of([run_of("gauss-3"), run_of("digits", "cnn-small")])
    assert names(plan.tables) == ["recovery_posterior", "recovery_paradigms", "recovery_diagnosis"]
    assert names(plan.figures) == [
        "curves/gauss-3/mlp",
        "posterior",
        "reliability/digits/cnn-small",
        "reliability/gauss-3/mlp",
        "paradigms",
    ]
    assert names(plan_of([run_of("digits")]).figures) == ["reliability/digits/mlp", "paradigms"]
    assert names(plan_of([]).figures) == ["paradigms"]


def test_places_that_only_a_separator_tells_apart_have_figures_of_their_own():
    runs = [run_of("a_b", "c", imported=True), run_of("a", "b_c", imported=True)]
    files = recovery_layout.figure_files(plan_of(runs).figures, "png")
    assert len(set(files)) == len(files) == 3


def test_gauss_10_has_no_line_to_draw_over():
    assert names(plan_of([run_of("gauss-10")]).figures)[0] == "posterior"


def test_an_imported_run_of_a_built_in_dataset_has_no_prepared_data():
    assert names(plan_of([run_of("gauss-3", imported=True)]).figures) == [
        "reliability/gauss-3/mlp",
        "paradigms",
    ]


@pytest.mark.parametrize(
    ("settings", "swept"),
    [
        ({"base": "gauss-3", "sizes": {"train": 100}}, True),
        ({"base": "gauss-3", "sizes": {"train": 100}, "noise": 2}, False),
        ({"base": "gauss-3", "sizes": {"test": 100}}, False),
        ({"base": "gauss-10", "sizes": {"train": 100}}, False),
    ],
)
def test_a_sweep_is_two_sizes_of_one_problem(settings, swept):
    plan = plan_of([run_of("gauss-3"), run_of("other")], {"other": settings})
    assert ("sample_size" in names(plan.figures)) == swept


def test_downloads_are_in_no_sweep():
    spec = registry.job_spec("cifar10")
    assert recovery_layout.sweep_group(spec) is None


def test_a_job_is_told_only_what_it_depends_on():
    run = run_of("gauss-3", loss="focal-1")
    assert json.loads(plan_of([run]).spec(run)) == {"run": {"loss": "focal-1", "gamma": None}, "bins": 10}
    summary = json.loads(plan_of([run, run_of("gauss-3", loss="focal-1", seed=2)]).summary_spec)
    assert summary == {"runs": {"gauss-3/mlp": {"focal-1": ["seed1", "seed2"]}}, "human": []}


def test_human_labels_reach_the_runs_of_their_dataset_alone():
    runs = [run_of("cifar10"), run_of("cifar10", loss="focal-1"), run_of("gauss-3")]
    plan = plan_of(runs, human={"cifar10": "download", "svhn": "unused.npy"})
    assert plan.human_files(runs[0]) == ["results/human_labels/cifar10.npz"]
    assert plan.human_files(runs[2]) == []
    assert plan.human_datasets == ["cifar10"]
    assert plan.human_sources(runs[0]) == []
    assert json.loads(plan.human_spec(runs[0])) == {"base": "cifar10", "source": "download"}
    assert names(plan.tables)[-1] == "recovery_human"
    assert names(plan.figures)[-1] == "human"
    own = plan_of(runs, human={"cifar10": "mine.npy"})
    assert own.human_sources(runs[0]) == ["mine.npy"]


def test_human_labels_of_a_variant_are_those_of_its_base():
    run = run_of("cifar10-v")
    plan = plan_of([run], {"cifar10-v": {"base": "cifar10"}}, {"cifar10-v": "download"})
    assert json.loads(plan.human_spec(run))["base"] == "cifar10"


def test_curves_need_data_and_one_run_a_loss():
    runs = [run_of("gauss-3", seed=seed, loss=loss) for loss in ("ce", "focal-1") for seed in (2, 1)]
    assert plan_of([*runs, run_of("digits")]).curve_inputs == [
        "results/data/gauss-3.npz",
        "results/runs/gauss-3/mlp/ce/seed2/logits.npz",
        "results/runs/gauss-3/mlp/focal-1/seed2/logits.npz",
    ]


def test_files_of_products():
    figures = [recovery_layout.PARADIGMS]
    assert recovery_layout.figure_files(figures, "png") == ["results/figures/recovery/paradigms.png"]
    tables = [recovery_layout.HUMAN_TABLE]
    assert recovery_layout.table_files(tables, "md", "tex") == [
        "results/tables/recovery_human.md",
        "results/tables/recovery_human.tex",
    ]


def test_the_sweep_trains_every_size_for_as_many_steps():
    config = yaml.safe_load(SWEEP.read_text())
    recipes = yaml.safe_load((SWEEP.parent / "recipes.yaml").read_text())["recipes"] | config["recipes"]
    steps = {}
    for block in config["runs"]:
        (dataset,) = block["datasets"]
        spec = registry.job_spec(dataset, config["datasets"].get(dataset))
        recipe = recipes[block["recipe"]]
        train = spec["parameters"]["sizes"]["train"]
        steps[train] = recipe["epochs"] * -(-train // recipe["batch_size"])
    assert len(steps) == 6
    assert all(abs(count - 240) <= 4 for count in steps.values())
