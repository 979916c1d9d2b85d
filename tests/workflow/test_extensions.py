"""New parts in one small comparison, what an edit of each reruns, and mistakes in them.

They are the files of docs/extend.md, and a calibrator, a metric and a figure of the package, one file each.
"""

import ast
import csv
import re

import pytest

from tests.project import ROOT, tiny_recipe

BLOCK = re.compile(r"^```(\w+)\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = {name: text for _, name, text in BLOCK.findall((ROOT / "docs" / "extend.md").read_text("utf-8"))}
CONFIG = ("--configfile", "own.yaml")
CALIBRATOR = '''
"""Method `halved`: a calibrator with its own parameter."""

from focalcal.calibration.calibrators import Calibrator
from focalcal.calibration.catalogue import calibrator
from focalcal.calibration.fitting.search import Fit
from focalcal.theory.psi import log_psi


@calibrator(id="halved", label="Halved logits", color="sky", marker="*", criteria=())
class HalvedLogits(Calibrator):
    """softmax(logits / 2), nothing fitted."""

    def _search(self, objective):
        return Fit({"divisor": [2.0]})

    def log_map(self, logits):
        return log_psi(logits, 0.0, self.parameters["divisor"][0])
'''
METRIC = '''
"""Metric `top_two_error`."""

import numpy as np

from focalcal.calibration.catalogue import metric
from focalcal.calibration.scores.predictions import Predictions


@metric(label="Top-two error", factor=100, decimals=1)
def top_two_error(probs, labels):
    """Return the share of samples whose label is not among the two most probable classes."""
    predictions = Predictions.of(probs, labels)
    best = np.argsort(-predictions.probs, axis=1)[:, :2]
    return float(np.mean(np.all(best != predictions.labels[:, None], axis=1)))
'''
FIGURE = '''
"""A figure of one number."""

from matplotlib.figure import Figure

from focalcal.reporting.products import figure


@figure(
    section="scores",
    order=99,
    heading="Number of scores",
    caption="How many test scores there are.",
    inputs=("metrics",),
)
def number_of_scores(sources):
    """Return one bar."""
    drawn = Figure()
    drawn.subplots().bar([0], [(sources.metrics["split"] == "test").sum()])
    return drawn
'''
PARTS = {
    "calibration/halved": CALIBRATOR,
    "calibration/top_two": METRIC,
    "reporting/figures/number_of_scores": FIGURE,
}


def with_the_files_of_the_page(project):
    """Return a project with the files of the page and a short recipe."""
    for name, text in FILES.items():
        path = project.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    project.configure(lambda config: config.update(recipes={"quickstart": tiny_recipe()}))
    for old, new in (("count: 1500", "count: 300"), ("[ce, focal-2, bounded", "[ce, bounded")):
        project.edit("own.yaml", old, new)
    return project


@pytest.fixture(scope="module")
def extended(finished_project, tmp_path_factory):
    """A finished project with new parts, its workflow run again."""
    project = finished_project.copy(tmp_path_factory.mktemp("extended") / "project")
    for name, text in PARTS.items():
        (project.root / "focalcal" / f"{name}.py").write_text(text.lstrip(), encoding="utf-8")
    project.configure(lambda config: config["calibration"]["methods"].append("halved"))
    assert "train" not in project.planned()
    with_the_files_of_the_page(project)
    project.edit("own.yaml", "svs, shrinkage]", "svs, shrinkage, halved]")
    project.snakemake(*CONFIG)
    return project


def rows(project, name):
    with (project.root / "results" / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as source:
        return list(csv.DictReader(source))


def test_there_is_one_short_example_of_each_kind():
    kinds = [name.split("/")[1] for name in FILES if name.startswith("extensions/")]
    assert sorted(kinds) == ["calibrators", "datasets", "losses", "metrics", "models"]
    for name, text in FILES.items():
        if name.endswith(".py"):
            assert len(text.splitlines()) < 25, name
            assert ast.parse(text).body


def test_everything_is_compared_with_everything(extended):
    found = rows(extended, "metrics")
    assert {row["dataset"] for row in found} == {"rings"}
    assert {row["model"] for row in found} == {"mlp", "tanh"}
    assert {row["loss"] for row in found} == {"ce", "bounded", "bounded-0.3"}
    assert "shrinkage" in {row["method"] for row in found}
    assert {row["method"] for row in found if row["metric"] == "overconfidence"} >= {"none", "shrinkage"}
    assert "shrinkage" in (extended.root / "results/tables/arena.md").read_text("utf-8")
    report = (extended.root / "results/report.html").read_text("utf-8")
    for name in ("shrinkage", "overconfidence", "bounded", "tanh", "rings"):
        assert name in report
    for words in (
        "Halved logits",
        "Top-two error (%)",
        "Number of scores",
        "How many test scores there are.",
    ):
        assert words in report
    assert (extended.root / "results" / "figures" / "number_of_scores.pdf").is_file()
    assert len(rows(extended, "recommended")) == 6


def test_a_calibrator_and_a_metric_of_the_package_are_measured(extended):
    found = {(row["method"], row["metric"]): row for row in rows(extended, "metrics")}
    row = found["halved", "top_two_error"]
    assert 0 <= float(row["value"]) <= 1
    # It has neither gamma nor temperature.
    assert (row["gamma"], row["temperature"]) == ("", "")
    assert found["halved", "nll"]["value"] != found["none", "nll"]["value"]
    assert found["halved", "accuracy"]["value"] == found["none", "accuracy"]["value"]
    assert "top_two_error_mean" in rows(extended, "scores")[0]


@pytest.mark.parametrize("name", ["scores", "overview", "arena", "networks"])
def test_the_calibrator_is_in_the_tables(extended, name):
    text = (extended.root / "results" / "tables" / f"{name}.md").read_text("utf-8")
    assert "Halved logits" in text


@pytest.mark.parametrize(
    ("file", "old", "new", "runs_again"),
    [
        ("losses/bounded.py", "0.7 if", "0.6 if", {"train": 4, "calibrate": 4, "recommend": 4}),
        ("models/tanh.py", "64", "32", {"train": 3, "calibrate": 3, "recommend": 3}),
        ("calibrators/shrinkage.py", "0.001, 1", "0.002, 1", {"train": 0, "calibrate": 6, "recommend": 6}),
        ("metrics/overconfidence.py", "max(0.0", "max(0.1", {"train": 0, "calibrate": 6, "recommend": 6}),
        ("datasets/rings.py", "1 + labels", "2 + labels", {"train": 6, "calibrate": 6, "recommend": 6}),
        ("losses/bounded.py", "import torch", "# why\nimport torch", {}),
        ("../focalcal/calibration/halved.py", "[2.0]", "[3.0]", {"train": 0, "calibrate": 6, "recommend": 6}),
    ],
)
def test_an_edit_reruns_what_uses_the_file(extended, tmp_path, file, old, new, runs_again):
    project = extended.copy(tmp_path / "edited")
    project.edit(f"extensions/{file}", old, new)
    planned = project.planned(*CONFIG)
    if not runs_again:
        assert planned == {}
    for rule, count in runs_again.items():
        assert planned.get(rule, 0) == count, planned


def test_an_edited_figure_is_drawn_again(extended, tmp_path):
    project = extended.copy(tmp_path / "edited")
    project.edit("focalcal/reporting/figures/number_of_scores.py", "[0]", "[1]")
    assert project.planned(*CONFIG).keys() == {"figures", "report"}


def test_a_file_that_nothing_uses_reruns_nothing(extended, tmp_path):
    project = extended.copy(tmp_path / "unused")
    (project.root / "extensions/calibrators/unused.py").write_text(
        FILES["extensions/calibrators/shrinkage.py"], encoding="utf-8"
    )
    (project.root / "extensions/losses/unused.py").write_text(
        FILES["extensions/losses/bounded.py"], encoding="utf-8"
    )
    assert project.planned(*CONFIG) == {}


def test_a_mistake_is_refused_before_any_job_in_one_line(fresh_project):
    project = with_the_files_of_the_page(fresh_project)
    (project.root / "extensions" / "models" / "mine.py").write_text("def build(:", encoding="utf-8")
    output = project.snakemake("-n", *CONFIG, expect=2)
    (error,) = [line for line in output.splitlines() if line.startswith("error: ")]
    assert error.startswith("error: extensions/models/mine.py, line 1: ")
    assert "Traceback" not in output
