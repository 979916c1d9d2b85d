"""Mistakes that no schema sees are refused before any job, in one line."""

import re

import pytest

from focalcal.common.errors import UserError
from focalcal.common.extensions import check_extensions
from focalcal.config.checks import check_own_code
from focalcal.config.grid import build_grid
from tests.project import ROOT, merged_config

MISTAKES = {
    "settings of no dataset": ("datasets", {"gaus-10": {"noise": 2}}, "unknown dataset 'gaus-10'"),
    "braces in a folder": (
        "datasets",
        {"mine": {"folder": "{here}"}},
        r"'datasets\.mine\.folder' is \"{here}\"",
    ),
    "braces in a file of human labels": (
        "recovery",
        {"human_labels": {"gauss-3": "{x}.npz"}},
        r"'recovery\.human_labels\.gauss-3' is \"{x}\.npz\"; allowed: .*; .*wildcards",
    ),
    "unknown metric": ("report", {"metric": "brie"}, r"'report\.metric' is \"brie\".*did you mean 'brier'"),
    "reliability of no method": (
        "report",
        {"reliability_methods": ["tss"]},
        r"'report\.reliability_methods' is \"tss\".*did you mean 'ts'",
    ),
    "criterion that is left out but not fitted": (
        "calibration",
        {"criteria": ["ece"]},
        r"'report\.criterion' is \"nll\"; allowed: ece",
    ),
    "a method of sizes that log-loss does not fit": (
        "calibration",
        {"sizes_methods": ["ts", "ts-m20"]},
        r"'calibration\.sizes_methods' is \"ts-m20\"; .*; they are fitted by log-loss",
    ),
    "sizes without temperature scaling": (
        "calibration",
        {"sizes": [100], "sizes_methods": ["fts"]},
        r"'calibration\.sizes_methods' is fts; allowed with 'calibration\.sizes': a list with ts",
    ),
    "a simulated calibrator that log-loss does not fit": (
        "simulation",
        {"classes": [2], "samples": [100], "methods": ["ts-m20"]},
        r"'simulation\.methods' is \"ts-m20\"; .*; they are fitted by log-loss",
    ),
    "an unknown distortion": (
        "simulation",
        {"classes": [2], "samples": [100], "distortions": ["flat"]},
        r"'simulation\.distortions\[0\]' is \"flat\"; allowed: nothing, temperature, focal",
    ),
    "one gamma to search between": (
        "calibration",
        {"gammas": [0.5]},
        r"'calibration\.gammas' has only 0\.5, but method 'fts-line'.*allowed: at least two values;",
    ),
    "one temperature to search between": (
        "calibration",
        {"temperatures": {"start": 1, "stop": 1.4, "step": 0.5}},
        r"'calibration\.temperatures' has only 1, but method 'fts-line'",
    ),
    "temperatures that fall": (
        "calibration",
        {"temperatures": {"start": 1, "stop": 0.1, "step": 0.5}},
        r"'calibration\.temperatures\.stop' is 0\.1; allowed: at least start",
    ),
    "grid too fine": (
        "calibration",
        {"temperatures": {"start": 1, "stop": 2, "step": 1e-9}},
        r"'calibration\.temperatures\.step' is 1e-09, .*allowed: at most 100000",
    ),
    "unknown method": ("calibration", {"methods": ["fst"]}, r"methods' is \"fst\".*did you mean 'fts'"),
    "range of gammas that falls": (
        "theory",
        {"fit_ranges": [[0, 10], [5, 2]]},
        r"'theory\.fit_ranges' has \[5, 2\], in which .* 0 of 'theory\.matching_gammas' lie; allowed: .* 3;",
    ),
    "too few gammas in the default ranges": (
        "theory",
        {"matching_gammas": [1, 2, 3]},
        r"'theory\.fit_ranges' has \[1\.0, 10\.0\].* 2 of 'theory\.matching_gammas' lie",
    ),
    "human labels of no dataset": (
        "recovery",
        {"human_labels": {"cifar1O": "download"}},
        r"'recovery\.human_labels' is \"cifar1O\".*did you mean 'cifar10'",
    ),
    "human labels nobody serves": (
        "recovery",
        {"human_labels": {"gauss-3": "download"}},
        r"'recovery\.human_labels\.gauss-3' is 'download'.*allowed: the path of a file",
    ),
    "human labels of no file": (
        "recovery",
        {"human_labels": {"gauss-3": "no.npz"}},
        r"'recovery\.human_labels\.gauss-3' is \"no\.npz\", which is not a file; allowed: an existing file",
    ),
    "throughput of no model": (
        "plan",
        {"images_per_second": {"default": 1, "resnet5O": 2}},
        r"'plan\.images_per_second': .*'resnet5O'",
    ),
    "more gammas than a command line takes": (
        "calibration",
        {
            "gammas": [step / 1e5 for step in range(20_000)],
            "temperatures": {"start": 1, "stop": 3, "step": 1},
        },
        r"'calibration' is \d+ characters long as JSON; allowed: at most 100000",
    ),
    "logits whose name repeats itself": (
        "logits",
        {"mine": {"path": "x.npz", "dataset": "own", "model": "ab" * 20, "loss": "ce", "seed": 1}},
        r"'logits\.mine\.model' has \"(ab){20}\", which ends with 20 or more repetitions",
    ),
    "key that is a number": ("logits", {1: {}}, r"'logits\.1' is not a text.*quotes"),
}
BLOCKS = {
    "unknown loss": ({"losses": ["focul-2"]}, r"losses': .*'focul-2'.*focal-GAMMA"),
    "unknown dataset": ({"datasets": ["gaus-3"]}, r"datasets' is \"gaus-3\".*did you mean 'gauss-3'"),
    "unknown model": ({"models": ["mpl"]}, r"models': .*'mpl'.*mlp"),
    "model that needs images": ({"models": ["cnn-small"]}, r"models', dataset 'gauss-10': .*'cnn-small'"),
    "unknown recipe": ({"recipe": "quickstar"}, r"recipe' is .*did you mean 'quickstart'"),
}
RECIPES = {
    "milestones that fall": ({"milestones": [250, 150]}, r"milestones is \[250, 150\]; allowed: .*increase"),
    "milestones of another schedule": (
        {"milestones": [2], "schedule": "cosine"},
        r"milestones is \[2\]; allowed: nothing with schedule cosine",
    ),
    "gamma milestones that stay": ({"gamma_milestones": [5, 5]}, r"gamma_milestones is \[5, 5\]"),
    "bf16 on a CPU": ({"device": "cpu", "precision": "bf16"}, r'device is "cpu"; allowed: auto or cuda'),
    "snapshot after the last epoch": (
        {"snapshot_epochs": [1, 99]},
        r"snapshot_epochs is \[1, 99\]; allowed: at most the number of epochs, which is 20",
    ),
    "AdaFocal that starts below": (
        {"adafocal": {"start": -3}},
        r"adafocal\.start is -3; allowed: .* is -2\.0, ",
    ),
    "AdaFocal that starts above": (
        {"adafocal": {"high": 0.5}},
        r"adafocal\.start is 1\.0; allowed: from adafocal\.low, .* to adafocal\.high, which is 0\.5",
    ),
    "AdaFocal without room": ({"adafocal": {"low": 30}}, r"adafocal\.low is 30; allowed: .* which is 20"),
}


def assert_refused(config, message):
    with pytest.raises(UserError, match=message) as caught:
        build_grid(config, ROOT)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_across_keys_is_refused(name):
    section, values, message = MISTAKES[name]
    config = merged_config()
    config["report"].pop("criterion", None)
    config[section] = {**config.get(section, {}), **values}
    assert_refused(config, message)


@pytest.mark.parametrize("name", BLOCKS)
def test_a_mistake_in_a_block_of_runs_is_refused(name):
    values, message = BLOCKS[name]
    config = merged_config()
    config["runs"][0].update(values)
    assert_refused(config, rf"^config key 'runs\[0\]\.{message}")


def test_a_run_that_is_described_twice_is_refused():
    config = merged_config()
    config["runs"].append({**config["runs"][0], "losses": ["ce"], "seeds": [2]})
    assert_refused(config, r"describe the run gauss-10/mlp/ce/seed2 more than once")


def test_logits_that_describe_one_run_are_named(tmp_path):
    (tmp_path / "x.npz").touch()
    entry = {"path": str(tmp_path / "x.npz"), "dataset": "d", "model": "m", "loss": "ce", "seed": 1}
    config = merged_config()
    config["logits"] = {"one": entry, "other": dict(entry)}
    assert_refused(config, r"describe the run d/m/ce/seed1 more than once \(logits 'one', 'other'\); allowed")
    config["logits"] = {"one": entry | {"loss": "focal3"}}
    assert_refused(config, r"'logits\.one\.loss' is \"focal3\"; allowed: .*did you mean 'focal-3'")
    config["logits"] = {"one": entry | {"loss": False}}
    assert_refused(config, r"'logits\.one\.loss' is false; .*YAML reads no, off, yes and on as false")


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_that_contradicts_itself_is_refused(name):
    values, message = RECIPES[name]
    config = merged_config()
    config["recipes"]["recovery"] = {**config["recipes"]["recovery"], **values}
    assert_refused(config, r"config key 'recipes\.recovery': recipe\." + message)


def test_a_configuration_that_contains_itself_is_refused():
    config = merged_config()
    config["report"]["title"] = config
    assert_refused(config, r"the configuration contains itself, .*remove the YAML alias")


def test_a_single_gamma_is_enough_for_a_grid_search():
    config = merged_config()
    config["calibration"].update(methods=["none", "ts", "fts", "psi"], gammas=[0.5])
    assert build_grid(config, ROOT).paths


def test_log_loss_is_enough_as_the_only_criterion():
    config = merged_config()
    config["calibration"]["criteria"] = ["nll"]
    assert build_grid(config, ROOT).paths


def test_calibrators_can_be_chosen_without_choosing_the_reliability_diagrams():
    config = merged_config()
    config["calibration"]["methods"] = ["none", "ts", "svs"]
    assert build_grid(config, ROOT).paths


def test_the_last_temperature_is_counted_in_decimals():
    config = merged_config()
    # In binary 0.1 + 0.2 lies above 0.3.
    config["calibration"]["temperatures"] = {"start": 0.1, "stop": 0.3, "step": 0.2}
    assert build_grid(config, ROOT).paths


def test_a_gamma_beyond_what_psi_is_computed_for_is_refused(tmp_path):
    config, loss = merged_config(), "focal-100.5+ls-0.1"
    config["runs"][0]["losses"] = ["focal-100", loss]
    assert_refused(config, rf"'runs\[0\]\.losses': loss '{re.escape(loss)}': gamma must be at most 100")
    (tmp_path / "logits.npz").touch()
    entry = {"path": str(tmp_path / "logits.npz"), "dataset": "mine", "model": "net", "loss": loss, "seed": 1}
    config.update(runs=[], logits={"mine": entry})
    assert_refused(config, rf"'logits\.mine\.loss': loss '{re.escape(loss)}': gamma must be at most 100")


def test_a_dataset_of_ones_own_that_no_run_uses_may_wait_for_its_files():
    config = merged_config()
    config["datasets"] = {**config["datasets"], "mine": {"folder": "not/here/yet"}}
    assert "mine" not in build_grid(config, ROOT).datasets


def test_a_run_that_is_not_configured_is_named():
    grid = build_grid(merged_config(), ROOT)
    with pytest.raises(UserError, match="gauss-3/mlp/adafocal/seed1 is not a run of this configuration"):
        grid["gauss-3/mlp/adafocal/seed1"]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("losses/focal-2.py", "def loss(): ...", ": 'focal-2' is the name of one that"),
        ("calibrators/ts.py", "class A: ...", ": 'ts' is the name of one that"),
        ("datasets/digits.py", "def load(): ...", ": 'digits' is the name of one that"),
        ("loss/mine.py", "", " is found by no name; allowed: the folders datasets, losses"),
    ],
)
def test_a_misplaced_or_misnamed_extension_is_refused(tmp_path, file, text, message):
    path = tmp_path / "extensions" / file
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        check_own_code(tmp_path)
    assert str(caught.value).startswith(f"extensions/{file}{message}")


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("losses/mine.py", "def loss(logits): ...", ": loss does not take the arguments it is given"),
        ("losses/mine.py", "def loss(logits, labels): ...", ": loss does not take the arguments it is given"),
        ("losses/mine.py", "def los(logits, labels): ...", " does not define what it should; allowed"),
        ("metrics/mine.py", "def metric(probs, labels, bins): ...", ": metric does not take the arguments"),
        ("metrics/mine.py", "def metric(probs, labels, *, bins): ...", ": metric does not take the arg"),
        ("models/mine.py", "def build(): ...", ": build does not take the arguments it is given"),
        ("calibrators/mine.py", "class A:\n  def fit(self): ...", ": class A has no method predict_proba"),
        (
            "metrics/mine.py",
            "import absent.part\ndef metric(a, b): ...",
            ", line 1: the package 'absent'",
        ),
        ("metrics/mine.py", "from absent import x\ndef metric(a, b): ...", ", line 1: the package 'absent'"),
    ],
)
def test_an_extension_that_cannot_be_called_is_refused_without_running_it(tmp_path, file, text, message):
    path = tmp_path / "extensions" / file
    path.parent.mkdir(parents=True)
    path.write_text(f"{text}\n1 / 0", encoding="utf-8")
    with pytest.raises(UserError) as caught:
        check_extensions(path.parent.name, (), tmp_path)
    assert str(caught.value).startswith(f"extensions/{file}{message}")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("losses/mine.py", "from _shared import x\ndef loss(logits, labels, gamma: 'float' = 1 / 0): ..."),
        ("losses/mine.py", "def loss(logits, labels, *, gamma=None, **others): ..."),
        ("metrics/mine.py", "import numpy as np\ndef metric(probs, labels, /, bins=15): ..."),
        ("metrics/mine.py", "from numpy import mean as metric"),
        ("models/mine.py", "def build(*sizes): ..."),
        ("calibrators/mine.py", "class A(Base): ..."),
    ],
)
def test_an_extension_that_may_be_called_is_accepted_without_running_it(tmp_path, file, text):
    path = tmp_path / "extensions" / file
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    path.with_name("_shared.py").write_text("x = 1 / 0", encoding="utf-8")
    check_extensions(path.parent.name, (), tmp_path)
