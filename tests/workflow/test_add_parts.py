"""A calibrator, a metric and a figure are one file each; tables, statistics and report then show them."""

import csv

import pytest

CALIBRATOR = '''
"""Method `halved`: a calibrator with a parameter of its own."""

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


def rows(path):
    with path.open(encoding="utf-8", newline="") as source:
        return list(csv.DictReader(source))


@pytest.fixture(scope="module")
def extended(finished_project, tmp_path_factory):
    """A finished project with three new files, its configuration naming the calibrator, run again."""
    project = finished_project.copy(tmp_path_factory.mktemp("extended") / "project")
    for path, text in {
        "focalcal/calibration/halved.py": CALIBRATOR,
        "focalcal/calibration/top_two.py": METRIC,
        "focalcal/reporting/figures/number_of_scores.py": FIGURE,
    }.items():
        (project.root / path).write_text(text.lstrip(), encoding="utf-8")
    project.configure(lambda config: config["calibration"]["methods"].append("halved"))
    assert "train" not in project.planned()
    project.snakemake("all")
    return project


def test_the_calibrator_and_the_metric_are_measured(extended):
    found = {
        (row["method"], row["metric"]): row
        for row in rows(extended.root / "results" / "tables" / "metrics.csv")
    }
    row = found["halved", "top_two_error"]
    assert 0 <= float(row["value"]) <= 1
    # It has neither gamma nor temperature.
    assert (row["gamma"], row["temperature"]) == ("", "")
    assert found["halved", "nll"]["value"] != found["none", "nll"]["value"]
    assert found["halved", "accuracy"]["value"] == found["none", "accuracy"]["value"]


@pytest.mark.parametrize("name", ["scores", "overview", "arena", "networks"])
def test_the_calibrator_is_in_the_tables(extended, name):
    text = (extended.root / "results" / "tables" / f"{name}.md").read_text("utf-8")
    assert "Halved logits" in text


def test_the_metric_is_in_the_table_of_all_scores(extended):
    header = rows(extended.root / "results" / "tables" / "scores.csv")[0]
    assert "top_two_error_mean" in header


def test_the_report_shows_all_three(extended):
    text = (extended.root / "results" / "report.html").read_text("utf-8")
    for words in (
        "Halved logits",
        "Top-two error (%)",
        "Number of scores",
        "How many test scores there are.",
    ):
        assert words in text
    assert (extended.root / "results" / "figures" / "number_of_scores.pdf").is_file()


def test_nothing_is_left_to_do_and_an_edit_of_the_new_file_reruns_its_readers(extended, tmp_path):
    assert extended.planned() == {}
    project = extended.copy(tmp_path / "edited")
    project.edit("focalcal/calibration/halved.py", "[2.0]", "[3.0]")
    planned = project.planned()
    assert planned["calibrate"] == 4
    assert "train" not in planned
    project.edit("focalcal/calibration/halved.py", "[3.0]", "[2.0]")
    project.edit("focalcal/reporting/figures/number_of_scores.py", "[0]", "[1]")
    assert set(project.planned()) == {"figures", "report"}
