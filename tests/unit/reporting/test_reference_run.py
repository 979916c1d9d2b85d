"""The published reference run holds what its pages say."""

import json

import pandas as pd
import pytest

from focalcal.calibration.catalogue import METRICS
from focalcal.reporting.records.measurements import load_metrics, sorted_settings, summarise
from focalcal.reporting.statistics.comparisons import compare_methods
from focalcal.reporting.text import format_number
from focalcal.training.appearance import loss_label, loss_order
from focalcal.workflow.grid import build_grid
from tests.project import ROOT, merged_config

REFERENCE = ROOT / "docs" / "reference-run"
CONFIGS = {"cifar10": "cifar10-cpu", "fashion-mnist": "fashion-mnist-cpu"}
TITLES = {"cifar10": "CIFAR-10", "fashion-mnist": "Fashion-MNIST"}
PAIRS = (("nll", "nll"), ("ece", "ece"), ("adaece", "adaece"), ("nll", "ece"))
"""What a fit is chosen by on validation data, and what it is measured by on test data."""
TEN = "published networks"
MEGABYTES = 8
FITS = (("none", ""), ("ts", "ece"), ("fts", "ece"))


def error_rows():
    """Return the rows of its page's first table: test ECE in per cent of each loss, on both datasets."""
    cells = {}
    for dataset in CONFIGS:
        scores = summarise(load_metrics(REFERENCE / dataset / "tables" / "metrics.csv"))
        for place in sorted_settings(scores):
            errors = [scores.loc[(*place, *fit, "ece")] for fit in FITS]
            least = min(round(100 * error["mean"], 2) for error in errors)
            texts = [
                f"{mark}{100 * error['mean']:.2f} ± {100 * error['std']:.2f}{mark}"
                for error in errors
                for mark in ["**" if round(100 * error["mean"], 2) == least else ""]
            ]
            accuracy = f"{100 * scores['mean'][*place, 'none', '', 'accuracy']:.1f}"
            cells.setdefault(place[2], []).extend([accuracy, *texts])
    return [f"| {loss_label(loss)} | {' | '.join(cells[loss])} |" for loss in sorted(cells, key=loss_order)]


def comparison_rows():
    """Return the rows of its page's main table: FTS against TS by criterion and metric, on both datasets."""
    rows = []
    for dataset, title in TITLES.items():
        frame = load_metrics(REFERENCE / dataset / "tables" / "metrics.csv")
        for losses, selected in (("all", frame), ("focal", frame[frame["loss"].map(is_focal)])):
            for criterion, metric in PAIRS:
                compared = compare_methods(selected, ("fts", criterion), ("ts", criterion), metric)
                factor, decimals = (1, 4) if metric == "nll" else (100, 2)
                low, high = compared.interval.low, compared.interval.high
                sizes = [
                    format_number(factor * size, decimals, signed=True)
                    for size in (compared.mean_difference, low, high)
                ]
                cells = [title, losses, METRICS[criterion].name, METRICS[metric].name, str(compared.runs)]
                cells += [sizes[0], f"{sizes[1]} to {sizes[2]}", f"{compared.wins} / {compared.losses}"]
                p_value = "<0.001" if compared.p_value < 0.001 else f"{compared.p_value:.3f}"
                rows.append(f"| {' | '.join([*cells, p_value, compared.verdict])} |")
    return rows


def test_the_readme_says_what_published_networks_show():
    """The sentence about FTS and TS, and the one about the best calibrator."""
    tables = REFERENCE / "published-networks" / "tables"
    effects = pd.read_csv(tables / "when_fts_pays.csv")
    effects = effects[(effects["metric"] == "nll") & (effects["criterion"] == "nll")]
    effects = effects.set_index(["origin", "family"])
    ranked = pd.read_csv(tables / "arena.csv")
    ranked = ranked[ranked["origin"] == TEN]
    best = ranked.loc[ranked["rank_mean"].idxmin()]

    def difference(value):
        return format_number(value, 4, signed=True)

    def gain(origin):
        row = effects.loc[origin, "Brier"]
        low, high = difference(row["interval_low"]), difference(row["interval_high"])
        counts = f"{row['wins']} of {row['settings_count']}"
        return f"({difference(row['difference_mean'])}, 95 % interval {low} to {high}, {counts})"

    finding = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert f"little on CIFAR-10 {gain(TEN)}, much on CIFAR-100 {gain('imported logits')}." in finding
    assert effects["verdict"].to_dict() == {
        (TEN, "Cross-entropy"): "no difference shown",
        (TEN, "Focal, varying \N{GREEK SMALL LETTER GAMMA}"): "no difference shown",
        (TEN, "Brier"): "lower",
        ("imported logits", "Brier"): "lower",
    }
    assert best["method"] == "sms"
    wins = round(best["win_rate"] * best["sets_count"])
    assert (
        f"structured matrix scaling lowers the log-loss of {wins} of {best['sets_count']} on CIFAR-10 "
        f"({difference(best['nll_difference'])}, 95 % interval over networks "
        f"{difference(best['nll_low'])} to {difference(best['nll_high'])})."
    ) in finding


def is_focal(loss):
    return loss.startswith("focal-") or loss in {"flsd-53", "adafocal"}


@pytest.mark.parametrize(
    "rows",
    [error_rows, comparison_rows],
)
def test_the_page_shows_its_numbers(rows):
    lines, rows = (REFERENCE / "README.md").read_text("utf-8").splitlines(), rows()
    first = lines.index(rows[0])
    assert lines[first : first + len(rows)] == rows


@pytest.mark.parametrize("dataset", CONFIGS)
def test_every_run_of_the_configuration_succeeded_with_the_same_code(dataset):
    config = json.loads((REFERENCE / dataset / "config.json").read_text("utf-8"))
    overlay = merged_config(CONFIGS[dataset])
    assert config["runs"] == overlay["runs"]
    # Methods may have been added since.
    assert config["calibration"] | {"methods": []} == overlay["calibration"] | {"methods": []}
    assert set(config["calibration"]["methods"]) <= set(overlay["calibration"]["methods"])
    runs = build_grid(config, ROOT)
    records = [
        json.loads((REFERENCE / dataset / "runs" / run.path / "run.json").read_text("utf-8")) for run in runs
    ]
    assert {record["status"] for record in records} == {"ok"}
    assert len({json.dumps(record["provenance"]["code"]) for record in records}) == 1
    scores = load_metrics(REFERENCE / dataset / "tables" / "metrics.csv")
    assert len(scores[["loss", "seed"]].drop_duplicates()) == len(records)


def test_it_is_small():
    total = sum(path.stat().st_size for path in REFERENCE.rglob("*") if path.is_file())
    assert total < MEGABYTES * 1_000_000
