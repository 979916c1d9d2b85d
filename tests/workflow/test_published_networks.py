"""Published networks in a workflow: they need nothing but a checkout, wherever Snakemake is started."""

import csv

import pytest

from tests.project import ROOT, Project

SNAKEFILE = ("--snakefile", str(ROOT / "Snakefile"))


@pytest.fixture
def elsewhere(tmp_path):
    """A folder without sources."""
    return Project(tmp_path)


def overlay(name):
    return ("--configfile", str(ROOT / "configs" / f"{name}.yaml"))


def test_fourteen_networks_are_planned_and_nothing_is_trained(elsewhere):
    planned = elsewhere.planned(*SNAKEFILE, *overlay("published-networks"))
    assert planned["import_logits"] == planned["calibrate"] == 14
    assert planned["recover"] == 10  # pairs of dataset and model
    assert not planned.keys() & {"train", "fetch_data", "training_figures"}


def test_the_overconfident_networks_are_planned(elsewhere):
    planned = elsewhere.planned(*SNAKEFILE, *overlay("cifar10-overfit-cpu"))
    assert planned["train"] == planned["calibrate"] == 30
    assert "import_logits" not in planned


def test_one_network_is_calibrated_in_another_folder(elsewhere):
    target = "results/calibration/cifar10/wrn-26-10/flsd-53/seed1/metrics.csv"
    elsewhere.snakemake(*SNAKEFILE, *overlay("published-networks"), "--", target)
    with (elsewhere.root / target).open(encoding="utf-8", newline="") as source:
        rows = [row for row in csv.DictReader(source) if (row["split"], row["metric"]) == ("test", "ece")]
    # M20 Table 1: 1.56 before, 0.84 after T = 0.9 (per cent).
    found = {
        (row["method"], row["criterion"]): (f"{100 * float(row['value']):.2f}", row["temperature"])
        for row in rows
    }
    assert found["none", ""] == ("1.56", "1.0")
    assert found["ts-m20", "ece"] == ("0.84", "0.9")


def test_a_network_that_cannot_be_fetched_stops_its_own_job_with_one_line(elsewhere):
    target = "results/runs/cifar100/resnet50/brier/seed1/logits.npz"
    blocked = elsewhere.root / "cache"
    blocked.write_text("a file where the cache folder should be")
    output = elsewhere.snakemake(
        *SNAKEFILE, *overlay("published-networks"), "--config", f"cache={blocked}", "--", target, expect=1
    )
    assert "error: networks/mukhoti2020-cifar100/resnet50-brier: the cache folder" in output
    assert "remove 'mukhoti2020-cifar100' from the config key 'published'" in output
    assert "Traceback" not in output
