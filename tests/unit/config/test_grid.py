import json
import re
import subprocess
import sys

import pytest

from focalcal.common.errors import UserError
from focalcal.config.grid import Grid, build_grid
from focalcal.config.provenance import ROOT
from tests.project import merged_config

OVERLAYS = sorted(path.stem for path in (ROOT / "configs").glob("*.yaml"))


@pytest.mark.parametrize("overlay", [None, *OVERLAYS])
def test_each_run_of_a_shipped_configuration_has_a_path_of_its_own(overlay):
    grid = build_grid(merged_config(overlay), ROOT)
    assert len(set(grid.paths)) == len(grid.paths) > 0


def test_each_block_is_a_product():
    config = merged_config()
    config["published"] = []
    config["runs"] = [
        {
            "datasets": ["gauss-3"],
            "models": ["mlp"],
            "losses": ["ce", "focal-2"],
            "seeds": [1, 2],
            "recipe": "recovery",
        }
    ]
    assert build_grid(config, ROOT).paths == [
        "gauss-3/mlp/ce/seed1",
        "gauss-3/mlp/ce/seed2",
        "gauss-3/mlp/focal-2/seed1",
        "gauss-3/mlp/focal-2/seed2",
    ]


def test_a_spec_holds_what_determines_the_run_and_nothing_else():
    config = merged_config()
    before = {run.path: spec for run, spec in specs(config)}
    config["calibration"]["bins"] = 20
    config["report"]["title"] = "Another"
    assert {run.path: spec for run, spec in specs(config)} == before
    config["recipes"]["recovery"]["epochs"] += 1
    after = {run.path: spec for run, spec in specs(config)}
    assert {path.split("/")[0] for path in after if after[path] != before[path]} == {"gauss-3"}


def test_a_training_asks_for_a_gpu_unless_its_recipe_says_cpu():
    config = merged_config()
    config["recipes"]["quickstart"] |= {"device": "cpu", "threads": 3}
    grid = build_grid(config, ROOT)
    asked = {run.recipe: (grid.gpus(run), grid.threads(run)) for run in grid if run.imported is None}
    assert asked == {"quickstart": (0, 3), "recovery": (1, 1)}


def specs(config):
    grid = build_grid(config, ROOT)
    return [(run, json.dumps(grid.training_spec(run))) for run in grid if run.imported is None]


@pytest.mark.parametrize(
    ("loss", "gamma"), [("ce", 0.0), ("focal-5", 5.0), ("flsd-53", None), ("my-own-loss", None)]
)
def test_psi_is_told_the_training_gamma_or_that_there_is_none(tmp_path, loss, gamma):
    config = merged_config()
    (tmp_path / "logits.npz").touch()
    entry = {"path": str(tmp_path / "logits.npz"), "dataset": "mine", "model": "net", "loss": loss, "seed": 1}
    config.update(runs=[], logits={"mine": entry}, published=[])
    grid = build_grid(config, ROOT)
    (run,) = grid
    assert grid.calibration_spec(run)["run"]["gamma"] == gamma


@pytest.mark.parametrize(("trained", "own_only"), [(True, False), (False, True)])
def test_only_without_trained_runs_are_own_logits_all_there_is(tmp_path, trained, own_only):
    config = merged_config()
    (tmp_path / "logits.npz").touch()
    entry = {"path": str(tmp_path / "logits.npz"), "dataset": "d", "model": "m", "loss": "ce", "seed": 1}
    config.update(runs=config["runs"] if trained else [], published=[], logits={"mine": entry})
    assert build_grid(config, ROOT).own_logits_only is own_only


def test_imported_and_trained_runs_are_told_apart_by_the_whole_path(tmp_path):
    config = merged_config()
    (tmp_path / "logits.npz").touch()
    identity = {"dataset": "gauss-3", "model": "mlp", "loss": "ce", "seed": 99}
    config["logits"] = {"mine": {"path": str(tmp_path / "logits.npz"), **identity}}
    grid = build_grid(config, ROOT)
    imported = re.compile(f"(?P<dataset>{grid.imported_constraint})/mlp/ce/seed(99|1)/run.json")
    trained = re.compile(f"(?P<dataset>{grid.trained_constraint})/mlp/ce/seed(99|1)/run.json")
    assert imported.fullmatch("gauss-3/mlp/ce/seed99/run.json")
    assert not imported.fullmatch("gauss-3/mlp/ce/seed1/run.json")
    assert trained.fullmatch("gauss-3/mlp/ce/seed1/run.json")
    assert not trained.fullmatch("gauss-3/mlp/ce/seed99/run.json")
    # A run whose number only begins like an imported one's is another run.
    assert not imported.fullmatch("gauss-3/mlp/ce/seed9/run.json")


def test_published_networks_are_known_by_their_checksums():
    grid = build_grid(merged_config("published-networks"), ROOT)
    run = grid["cifar10/resnet110-bottleneck/flsd-53/seed1"]
    assert (run.published, run.recipe) == ("mukhoti2020-cifar10", None)
    spec = grid.import_spec(run)
    assert set(spec) == {"name", "dataset", "model", "loss", "seed", "split", "checksums"}
    assert set(spec["checksums"]) == {
        f"{split}_{kind}.npy" for split in ("val", "test") for kind in ("logits", "labels")
    }
    assert grid.import_files(run) == []
    assert grid.trained_paths == []


def test_without_validation_samples_a_network_has_two_runs(tmp_path):
    config = merged_config()
    (tmp_path / "x.npz").touch()
    entry = {"path": str(tmp_path / "x.npz"), "dataset": "d", "model": "m", "loss": "ce", "seed": 5}
    published = ["chenyaofo-cifar10/resnet20-ce", "kull2019-cifar10/resnet110-ce"]
    config.update(runs=[], logits={"mine": {**entry, "split": "halves"}}, published=published)
    grid = build_grid(config, ROOT)
    assert grid.paths == [
        "d/m/ce/seed5",
        "d/m/ce/seed6",
        "cifar10/resnet20/ce/seed1",
        "cifar10/resnet20/ce/seed2",
        "cifar10/resnet110/ce/seed1",
    ]
    specs = {run.path: grid.import_spec(run) for run in grid}
    assert [spec.get("swapped") for spec in specs.values()] == [False, True, False, True, None]
    assert [spec["seed"] for spec in specs.values()] == [5, 6, 1, 2, 1]
    assert specs["d/m/ce/seed5"] | {"seed": 6, "swapped": True} == specs["d/m/ce/seed6"]
    assert grid.import_files(grid["d/m/ce/seed6"]) == [entry["path"]]


def test_a_published_network_that_is_trained_too_is_refused():
    config = merged_config("mukhoti2020")
    config["published"] = ["mukhoti2020-cifar10"]
    with pytest.raises(UserError, match=r"'published' describe the run cifar10/resnet50/brier/seed1 more"):
        build_grid(config, ROOT)


def test_human_labels_are_those_of_the_datasets_in_use(tmp_path):
    (tmp_path / "mine.npy").touch()
    config = merged_config("cifar10-cpu")
    config["datasets"] = {"small": {"base": "cifar10", "validation": 100}}
    config["runs"][0]["datasets"] = ["cifar10", "small"]
    labels = {"cifar10": str(tmp_path / "mine.npy"), "small": "download", "svhn": str(tmp_path / "mine.npy")}
    config["recovery"]["human_labels"] = labels
    grid = build_grid(config, ROOT)
    assert set(grid.human_labels) == {"cifar10", "small"}
    assert grid.human_spec("cifar10") == {"base": "cifar10", "source": labels["cifar10"]}
    assert grid.human_spec("small") == {"base": "cifar10", "source": "download"}
    assert grid.human_files("cifar10") == [labels["cifar10"]]
    assert grid.human_files("small") == []
    del config["recovery"]["human_labels"]
    assert build_grid(config, ROOT).human_labels == {}


def test_the_sections_that_define_the_runs_make_an_equal_grid():
    grid = build_grid(merged_config(), ROOT)
    again = Grid(grid.runs_spec(), ROOT)
    assert again.paths == grid.paths
    assert [again.calibration_spec(run) for run in again] == [grid.calibration_spec(run) for run in grid]


def test_the_grid_imports_nothing_heavy():
    heavy = ("numpy", "torch", "pandas", "pydantic", "matplotlib", "jsonschema", "yaml")
    code = f"import sys, focalcal.config.grid; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_no_runs_at_all_is_refused():
    config = merged_config()
    config["runs"] = config["published"] = []
    with pytest.raises(UserError, match="'runs', 'logits' and 'published' are all empty"):
        build_grid(config, ROOT)


def test_validation_sizes_have_a_spec_of_their_own():
    config = merged_config()
    before = {run.path: build_grid(config, ROOT).calibration_spec(run) for run in build_grid(config, ROOT)}
    config["calibration"] |= {"sizes": [50], "methods": ["none", "ts", "fts", "psi", "ts-m20"]}
    assert build_grid(config, ROOT).sizes_methods == ["none", "ts", "fts"]
    config["calibration"] |= {"methods": merged_config()["calibration"]["methods"], "sizes_methods": ["ts"]}
    grid = build_grid(config, ROOT)
    run = next(iter(grid))
    spec = grid.sizes_spec(run)
    assert (spec["methods"], spec["sizes"], spec["repetitions"], spec["resamples"]) == (["ts"], [50], 10, 300)
    # Another size calibrates no run again.
    assert {run.path: grid.calibration_spec(run) for run in grid} == before
