"""A mistake in a configuration: exit code 2, one line with key, value and repair, and no files written."""

import numpy as np
import pytest

from tests.project import Project, copy_sources, make_tiny
from tests.warm_snakemake import run_snakemake

GOOD_ARRAYS = {
    "val_logits": 4 * np.eye(3).repeat(20, axis=0),
    "val_labels": np.arange(3).repeat(20),
    "test_logits": 4 * np.eye(3).repeat(20, axis=0),
    "test_labels": np.arange(3).repeat(20),
}


def set_key(path, value):
    """Return a change that sets one key, given by its path."""

    def change(config):
        *parents, last = path
        for key in parents:
            config = config[key]
        config[last] = value

    return change


def drop_key(*path):
    def change(config):
        *parents, last = path
        for key in parents:
            config = config[key]
        del config[last]

    return change


def first_block(**values):
    return lambda config: config["runs"][0].update(values)


def repeated_block(config):
    config["runs"].append(dict(config["runs"][0], losses=["ce"], seeds=[2]))


def logits_entry(**values):
    entry = {"path": "logits.npz", "dataset": "mine", "model": "net", "loss": "ce", "seed": 1, **values}
    return lambda config: config.update(logits={"mine": entry})


def clash_with_a_trained_run(config):
    identity = {"dataset": "gauss-3", "model": "mlp", "loss": "ce", "seed": 1}
    config["logits"] = {"mine": {"path": "logits.npz", **identity}}


BROKEN_CONFIGS = {
    "unknown key": (set_key(["calibratoin"], {}), ["'calibratoin'", "did you mean 'calibration'"]),
    "unknown nested key": (
        set_key(["calibration", "temprature"], 1),
        ["'calibration.temprature'", "did you mean 'temperatures'"],
    ),
    "missing section": (drop_key("report"), ["'report'", "missing"]),
    "missing nested key": (drop_key("calibration", "bins"), ["'calibration.bins'", "missing"]),
    "runs not a list": (set_key(["runs"], "gauss-3"), ["'runs'", '"gauss-3"', "a list"]),
    "seeds not numbers": (first_block(seeds=["one"]), ["'runs[0].seeds[0]'", '"one"', "a whole number"]),
    "negative seed": (first_block(seeds=[-1]), ["'runs[0].seeds[0]'", "-1", "at least 0"]),
    "huge seed": (first_block(seeds=[2**32]), ["'runs[0].seeds[0]'", "4294967296", "at most 4294967295"]),
    "empty seeds": (first_block(seeds=[]), ["'runs[0].seeds'", "[]", "at least 1 item"]),
    "repeated seed": (first_block(seeds=[1, 1]), ["'runs[0].seeds'", "[1, 1]", "no item twice"]),
    "empty losses": (first_block(losses=[]), ["'runs[0].losses'", "[]", "at least 1 item"]),
    "unknown loss": (first_block(losses=["focul-2"]), ["'runs[0].losses'", "'focul-2'", "focal-GAMMA"]),
    "loss gamma below range": (first_block(losses=["focal--1"]), ["'runs[0].losses'", "'focal--1'"]),
    "loss gamma not a number": (first_block(losses=["focal-two"]), ["'runs[0].losses'", "'focal-two'"]),
    "loss gamma misspelt": (
        first_block(losses=["focal-2.0"]),
        ["'runs[0].losses'", "'focal-2.0'", "write 2"],
    ),
    "unknown dataset": (
        first_block(datasets=["gaus-3"]),
        ["'runs[0].datasets'", '"gaus-3"', "did you mean 'gauss-3'"],
    ),
    "unknown model": (first_block(models=["mpl"]), ["'runs[0].models'", "'mpl'", "mlp"]),
    "model that needs images": (
        first_block(models=["cnn-small"]),
        ["'runs[0].models'", "'cnn-small'", "'gauss-3'", "mlp"],
    ),
    "unknown recipe": (first_block(recipe="tny"), ["'runs[0].recipe'", '"tny"', "did you mean 'tiny'"]),
    "shell in a name": (
        first_block(datasets=["x; rm -rf ~"]),
        ["'runs[0].datasets[0]'", '"x; rm -rf ~"', "a text matching"],
    ),
    "path in a name": (
        first_block(datasets=["../../etc"]),
        ["'runs[0].datasets[0]'", '"../../etc"', "a text matching"],
    ),
    "duplicate run": (repeated_block, ["'runs'", "gauss-3/mlp/ce/seed2", "more than once"]),
    "dataset parameter unknown": (
        set_key(["datasets", "gauss-3"], {"size": 3}),
        ["'datasets.gauss-3.size'", "did you mean 'sizes'"],
    ),
    "dataset size zero": (
        set_key(["datasets", "gauss-3", "sizes", "train"], 0),
        ["'datasets.gauss-3.sizes.train'", "is 0", "at least 1"],
    ),
    "unknown criterion": (
        set_key(["calibration", "criteria"], ["loss"]),
        ["'calibration.criteria[0]'", '"loss"', "nll, ece, adaece"],
    ),
    "unknown method": (
        set_key(["calibration", "methods"], ["fst"]),
        ["'calibration.methods'", '"fst"', "did you mean 'fts'"],
    ),
    "gamma below -1": (
        set_key(["calibration", "gammas"], [-2]),
        ["'calibration.gammas[0]'", "-2", "at least -1"],
    ),
    "gamma not finite": (
        set_key(["calibration", "gammas"], [float("nan")]),
        ["'calibration.gammas[0]'", "NaN", "a finite number"],
    ),
    "temperature zero": (
        set_key(["calibration", "temperatures", "start"], 0),
        ["'calibration.temperatures.start'", "is 0", "at least 0.0001"],
    ),
    "temperatures reversed": (
        set_key(["calibration", "temperatures", "stop"], 0.1),
        ["'calibration.temperatures.stop'", "0.1", "at least start"],
    ),
    "temperature grid too fine": (
        set_key(["calibration", "temperatures", "step"], 1e-9),
        ["'calibration.temperatures.step'", "1e-09", "at most"],
    ),
    "bins zero": (set_key(["calibration", "bins"], 0), ["'calibration.bins'", "is 0", "at least 1"]),
    "bins not whole": (
        set_key(["calibration", "bins"], 1.5),
        ["'calibration.bins'", "1.5", "a whole number"],
    ),
    "bins with a point": (
        set_key(["calibration", "bins"], 15.0),
        ["'calibration.bins'", "15.0", "a whole number"],
    ),
    "recipe epochs zero": (
        set_key(["recipes", "tiny", "epochs"], 0),
        ["'recipes.tiny.epochs'", "at least 1"],
    ),
    "recipe key unknown": (set_key(["recipes", "tiny", "epoch"], 3), ["'recipes.tiny.epoch'", "'epochs'"]),
    "recipe rate negative": (
        set_key(["recipes", "tiny", "learning_rate"], -1),
        ["'recipes.tiny.learning_rate'", "-1", "above 0"],
    ),
    "logits file missing": (logits_entry(path="no.npz"), ["'logits.mine.path'", '"no.npz"', "existing file"]),
    "logits path with braces": (
        logits_entry(path="{mine}.npz"),
        ["'logits.mine.path'", '"{mine}.npz"', "a text matching", "wildcards"],
    ),
    "logits name with a line break": (
        logits_entry(dataset="mine\n"),
        ["'logits.mine.dataset'", '"mine\\n"', "a text matching"],
    ),
    "logits key missing": (
        lambda config: config.update(logits={"mine": {"path": "x.npz"}}),
        ["'logits.mine.dataset'", "missing"],
    ),
    "logits of a trained run": (clash_with_a_trained_run, ["gauss-3/mlp/ce/seed1", "more than once"]),
    "logits kind unknown": (
        logits_entry(kind="scores"),
        ["'logits.mine.kind'", '"scores"', "logits, probabilities"],
    ),
}

BROKEN_LOGITS = {
    "NaN": ({"val_logits": np.full((60, 3), np.nan)}, ["val_logits", "nan"]),
    "infinite": ({"test_logits": np.full((60, 3), np.inf)}, ["test_logits", "inf"]),
    "one dimension": ({"val_logits": np.zeros(60)}, ["val_logits", "(60,)"]),
    "another length": ({"val_labels": np.zeros(59, int)}, ["val_labels", "59"]),
    "other classes in test": ({"test_logits": np.zeros((60, 4))}, ["test_logits", "4"]),
    "label out of range": ({"test_labels": np.full(60, 3)}, ["test_labels", "3"]),
    "negative label": ({"val_labels": np.full(60, -1)}, ["val_labels", "-1"]),
    "label not whole": ({"val_labels": np.full(60, 0.5)}, ["val_labels", "0.5"]),
    "one class": ({"val_logits": np.zeros((60, 1)), "val_labels": np.zeros(60, int)}, ["val_logits", "1"]),
    "array missing": ({"test_labels": None}, ["test_labels"]),
    "pickled": ({"val_labels": np.array([{}] * 60)}, ["pickle"]),
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A copy of the sources with the small configuration, which nothing may write to."""
    project = Project(tmp_path_factory.mktemp("sources") / "project")
    copy_sources(project.root)
    project.configure(make_tiny)
    return project


@pytest.fixture
def project(sources):
    """The sources, their configuration restored after the test."""
    path = sources.root / "config.yaml"
    text = path.read_text("utf-8")
    yield sources
    path.write_text(text, encoding="utf-8")


def written_files(root):
    """Return the project's files, except caches of Python and Snakemake."""
    own = {"__pycache__", ".snakemake"}
    return sorted(str(path) for path in root.rglob("*") if path.is_file() and own.isdisjoint(path.parts))


def assert_refused(project, words):
    before = written_files(project.root)
    code, _, errors = run_snakemake(project.root, ["--cores", "1"])
    assert code == 2, errors
    lines = [line for line in errors.splitlines() if not line.startswith("Using workflow specific profile")]
    assert len(lines) == 1, errors
    assert lines[0].startswith("error: ")
    for word in words:
        assert word in lines[0]
    assert "Traceback" not in errors
    assert written_files(project.root) == before


@pytest.mark.parametrize("name", BROKEN_CONFIGS)
def test_broken_config_is_refused_in_one_line(project, name):
    change, words = BROKEN_CONFIGS[name]
    np.savez(project.root / "logits.npz", **GOOD_ARRAYS)
    project.configure(change)
    assert_refused(project, words)


@pytest.mark.parametrize("name", BROKEN_LOGITS)
def test_broken_logits_are_refused_in_one_line(project, name):
    changed, words = BROKEN_LOGITS[name]
    arrays = {key: value for key, value in {**GOOD_ARRAYS, **changed}.items() if value is not None}
    np.savez(project.root / "logits.npz", **arrays)
    project.configure(logits_entry())
    assert_refused(project, ["logits.mine", *words])


def test_a_seed_has_one_spelling(project):
    weights = "results/runs/gauss-3/mlp/ce/seed{}/weights.safetensors"
    assert project.planned(weights.format(1))["train"] == 1
    assert "MissingRuleException" in project.snakemake("-n", weights.format("01"), expect=1)
