"""The reference runs are complete, and the README says what they show; their own pages are generated."""

import json
import re
import tomllib

import pandas as pd
import pytest
import yaml

from focalcal.config.grid import build_grid
from focalcal.data.networks import networks_of
from focalcal.reporting.records.measurements import RUN, load_metrics, metrics_file
from focalcal.reporting.text import format_number
from tests.project import ROOT, merged_config

REFERENCE = ROOT / "docs" / "reference-run"
CONFIGS = {
    "cifar10": "cifar10-cpu",
    "cifar10-overfit": "cifar10-overfit-cpu",
    "fashion-mnist": "fashion-mnist-cpu",
    "mukhoti2020-text": "mukhoti2020-text",
}
TEN = "published networks"
MEGABYTES = 5
WORDS = dict(
    enumerate(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"], 1
    )
)


def readme():
    return " ".join((ROOT / "README.md").read_text("utf-8").split())


def test_the_readme_says_what_published_networks_show():
    """The sentence about FTS and TS, and the one about the best calibrator."""
    tables = REFERENCE / "published-networks" / "tables"
    effects = pd.read_csv(tables / "when_fts_pays.csv")
    effects = effects[effects["criterion"] == "nll"].set_index(["metric", "origin", "family"])
    price = effects.loc["ece", "imported logits", "Brier"]
    effects = effects.loc["nll"]
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

    finding = readme()
    many = f"much on CIFAR-100 {gain('imported logits')}, where it raises the ECE by"
    assert f"little on CIFAR-10 {gain(TEN)}, {many} {100 * price['difference_mean']:.1f} points." in finding
    assert price["verdict"] == "higher"
    assert effects["verdict"].to_dict() == {
        (TEN, "Cross-entropy"): "no difference shown",
        (TEN, "Focal, varying \N{GREEK SMALL LETTER GAMMA}"): "no difference shown",
        (TEN, "Brier"): "lower",
        ("imported logits", "Brier"): "lower",
    }
    assert best["method"] == "sms"
    wins = round(best["win_rate"] * best["sets_count"])
    assert (
        f"on CIFAR-10: structured matrix scaling lowers the log-loss of {wins} of {best['sets_count']} "
        f"({difference(best['nll_difference'])}, 95 % interval over networks "
        f"{difference(best['nll_low'])} to {difference(best['nll_high'])})."
    ) in finding


def test_the_readme_sets_the_texts_beside_the_printed_numbers():
    cells = pd.read_csv(REFERENCE / "mukhoti2020-text" / "tables" / "m20_ece.csv")
    cells = cells.set_index(["dataset", "source"])[["ce_pre_mean", "ce_post_temperature"]]

    def numbers(dataset, source):
        ece, temperature = cells.loc[dataset, source]
        return format_number(100 * ece, 1), format_number(temperature, 1)

    finding = readme()
    for words, dataset, name in (
        ("ECE of {} % and need T = {}", "20newsgroups", "20 Newsgroups"),
        ("{} % and {}", "sst-binary", "SST"),
    ):
        ours, printed = words.format(*numbers(dataset, "ours")), "{} %, {}".format(*numbers(dataset, "M20"))
        assert f"{ours} on {name} (printed: {printed})" in finding


def test_the_readme_counts_what_make_demo_runs():
    runs = list(build_grid(merged_config(), ROOT))
    published = sum(run.published is not None for run in runs)
    trained = f"trains {len(runs) - published} small networks"
    assert f"{trained}, takes the logits of {WORDS[published]} published ones" in readme()
    python = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["requires-python"]
    assert f"Python {python.removeprefix('>=')} or newer" in readme()


def test_the_readme_counts_published_networks_and_the_numbers_printed_about_them():
    tables = REFERENCE / "published-networks" / "tables"
    networks = WORDS[len(pd.read_csv(tables / "overview.csv"))]
    assert f"On {networks} published networks" in readme()
    assert f"before any correction for {networks} networks" in readme()
    claims = pd.read_csv(tables / "claims.csv")
    claims = claims[claims["id"].str.startswith("m20-released-")]
    assert set(claims["verdict"]) == {"reproduced"}
    numbers = sum(int(cells) for text in claims["measured"] for cells in re.findall(r"n = (\d+)", text))
    released = WORDS[len(networks_of("mukhoti2020-cifar10"))]
    assert (
        f"All {numbers} numbers that M20 prints about its {released} published CIFAR-10 networks" in readme()
    )


def test_the_readme_counts_small_tables():
    config = json.loads((REFERENCE / "small-datasets" / "config.json").read_text("utf-8"))
    tables = len(config["runs"][0]["datasets"])
    assert f"[{tables} small tables](docs/small-datasets.md)" in readme()
    assert f"`configs/small-datasets.yaml` has {tables} of the same kind" in readme()


def test_the_note_on_networks_that_were_not_available():
    note = yaml.safe_load((REFERENCE / "studies.yaml").read_text("utf-8"))["published-networks"]["note"]
    overview = pd.read_csv(REFERENCE / "published-networks" / "tables" / "overview.csv")
    fetched = WORDS[len(networks_of("mukhoti2020-cifar100"))]
    available = WORDS[(overview["dataset"] == "cifar100").sum()]
    assert f"fetches {fetched} networks on CIFAR-100, of which only {available} was available" in note


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


def test_it_is_small():
    total = sum(path.stat().st_size for path in REFERENCE.rglob("*") if path.is_file())
    assert total < MEGABYTES * 1_000_000
