"""The reference runs are complete, and the README says what they show; their own pages are generated."""

import json

import pandas as pd
import pytest

from focalcal.config.grid import build_grid
from focalcal.reporting.records.measurements import RUN, load_metrics
from focalcal.reporting.text import format_number
from tests.project import ROOT, merged_config
from tools.findings import metrics_file

REFERENCE = ROOT / "docs" / "reference-run"
CONFIGS = {
    "cifar10": "cifar10-cpu",
    "cifar10-overfit": "cifar10-overfit-cpu",
    "fashion-mnist": "fashion-mnist-cpu",
    "mukhoti2020-text": "mukhoti2020-text",
}


def test_the_numbers_of_the_readme_are_those_of_the_tables():
    """What it says of FTS after the Brier score, of structured matrix scaling, and of M20's texts."""
    effects = pd.read_csv(REFERENCE / "published-networks" / "tables" / "when_fts_pays.csv")
    shown = effects[(effects["family"] == "Brier") & (effects[["metric", "criterion"]] == "nll").all(axis=1)]
    arena = pd.read_csv(REFERENCE / "published-networks" / "tables" / "arena.csv")
    sms = arena[(arena["origin"] == "published networks") & (arena["method"] == "sms")]
    cells = pd.read_csv(REFERENCE / "mukhoti2020-text" / "tables" / "m20_ece.csv")
    cells = cells[cells["source"].isin(["ours", "M20"])]
    differences = [
        *shown[["difference_mean", "interval_low", "interval_high"]].to_numpy().ravel(),
        *sms[["nll_difference", "nll_low", "nll_high"]].to_numpy().ravel(),
    ]
    numbers = [format_number(value, 4, signed=True) for value in differences]
    numbers += [f"{format_number(100 * value, 1)} %" for value in cells["ce_pre_mean"]]
    numbers += [format_number(value, 1) for value in cells["ce_post_temperature"]]
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(numbers) == 17
    assert [number for number in numbers if number not in text] == []


@pytest.mark.parametrize("dataset", CONFIGS)
def test_every_run_of_the_configuration_succeeded_with_the_same_code(dataset):
    config = json.loads((REFERENCE / dataset / "config.json").read_text("utf-8"))
    overlay = merged_config(CONFIGS[dataset])
    assert config["runs"] == overlay["runs"]
    # Methods may have been added since.
    assert config["calibration"] | {"methods": []} == overlay["calibration"] | {"methods": []}
    assert set(config["calibration"]["methods"]) <= set(overlay["calibration"]["methods"])
    runs = pd.read_csv(REFERENCE / dataset / "runs.csv")
    assert len(runs) == len(list(build_grid(config, ROOT)))
    assert set(runs["status"]) == {"ok"}
    assert len(set(runs["code"])) == 1
    scores = load_metrics(metrics_file(REFERENCE / dataset))
    assert len(scores[RUN].drop_duplicates()) == len(runs)


def test_every_figure_is_shown_on_a_page():
    pages = "".join(page.read_text("utf-8") for page in (ROOT / "README.md", *REFERENCE.glob("*.md")))
    figures = [path.relative_to(REFERENCE).as_posix() for path in REFERENCE.rglob("*.png")]
    assert figures
    assert [figure for figure in figures if f"{figure})" not in pages] == []
