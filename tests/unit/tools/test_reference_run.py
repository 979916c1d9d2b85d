"""The reference runs are complete, and the README says what they show; their own pages are generated."""

import json

import pandas as pd
import pytest

from focalcal.config.grid import build_grid
from focalcal.reporting.records.measurements import RUN, load_metrics
from tests.project import ROOT, merged_config
from tools.findings import metrics_file

REFERENCE = ROOT / "docs" / "reference-run"
CONFIGS = {
    "cifar10": "cifar10-cpu",
    "cifar10-overfit": "cifar10-overfit-cpu",
    "fashion-mnist": "fashion-mnist-cpu",
    "mukhoti2020-text": "mukhoti2020-text",
}


@pytest.mark.parametrize("dataset", CONFIGS)
def test_every_run_of_the_configuration_succeeded_with_the_same_code(dataset):
    config = json.loads((REFERENCE / dataset / "config.json").read_text("utf-8"))
    overlay = merged_config(CONFIGS[dataset])
    assert config["runs"] == overlay["runs"]
    # Methods may have been added or replaced since.
    assert config["calibration"] | {"methods": []} == overlay["calibration"] | {"methods": []}
    runs = pd.read_csv(REFERENCE / dataset / "runs.csv")
    assert len(runs) == len(list(build_grid(overlay, ROOT)))
    assert set(runs["status"]) == {"ok"}
    assert len(set(runs["code"])) == 1
    scores = load_metrics(metrics_file(REFERENCE / dataset))
    assert len(scores[RUN].drop_duplicates()) == len(runs)


def test_every_figure_is_shown_on_a_page():
    pages = "".join(page.read_text("utf-8") for page in (ROOT / "README.md", *REFERENCE.glob("*.md")))
    figures = [path.relative_to(REFERENCE).as_posix() for path in REFERENCE.rglob("*.png")]
    assert figures
    assert [figure for figure in figures if f"{figure})" not in pages] == []
