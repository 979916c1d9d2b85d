"""A mistake in a configuration: exit code 2, one line with key, value and repair, and no files written."""

import numpy as np
import pytest

from tests.project import Project, copy_sources, make_tiny

ARRAYS = {
    "val_logits": 4 * np.eye(3).repeat(20, axis=0),
    "val_labels": np.arange(3).repeat(20),
    "test_logits": 4 * np.eye(3).repeat(20, axis=0),
    "test_labels": np.arange(3).repeat(20),
}


def first_block(**values):
    return lambda config: config["runs"][0].update(values)


def calibration(**values):
    return lambda config: config["calibration"].update(values)


def own_logits(**values):
    entry = {"path": "nan.npz", "dataset": "mine", "model": "net", "loss": "ce", "seed": 1, **values}
    return lambda config: config.update(logits={"mine": entry})


BROKEN = {
    "unknown key": (calibration(temprature=1), ["'calibration.temprature'", "did you mean 'temperatures'"]),
    "missing section": (lambda config: config.pop("report"), ["'report'", "missing"]),
    "value of another type": (first_block(seeds=["one"]), ["'runs[0].seeds[0]'", '"one"', "a whole number"]),
    "value out of range": (calibration(gammas=[-2]), ["'calibration.gammas[0]'", "-2", "at least -1"]),
    "unknown name": (first_block(datasets=["gaus-3"]), ["'runs[0].datasets'", "did you mean 'gauss-3'"]),
    "shell in a name": (
        first_block(datasets=["x; rm -rf ~"]),
        ["'runs[0].datasets[0]'", '"x; rm -rf ~"', "a text matching"],
    ),
    "no file": (own_logits(path="no.npz"), ["'logits.mine.path'", '"no.npz"', "existing file"]),
    "logits that are not finite": (own_logits(), ["'logits.mine.path'", "val_logits", "nan"]),
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A copy of the sources with the small configuration, which nothing may write to."""
    project = Project(tmp_path_factory.mktemp("sources") / "project")
    copy_sources(project.root)
    project.configure(make_tiny)
    np.savez(project.root / "nan.npz", **{**ARRAYS, "val_logits": np.full((60, 3), np.nan)})
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


@pytest.mark.parametrize("name", BROKEN)
def test_a_mistake_is_refused_in_one_line(project, name):
    change, words = BROKEN[name]
    project.configure(change)
    before = written_files(project.root)
    done = project.run()
    assert done.returncode == 2, done.stderr
    _, line = done.stderr.splitlines()  # the first names the profile
    assert line.startswith("error: ")
    assert [word for word in words if word not in line] == [], line
    assert written_files(project.root) == before


def test_a_seed_has_one_spelling(project):
    weights = "results/runs/gauss-3/mlp/ce/seed{}/weights.safetensors"
    assert project.planned(weights.format(1))["train"] == 1
    assert "MissingRuleException" in project.snakemake("-n", weights.format("01"), expect=1)
