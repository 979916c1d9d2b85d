"""Published networks in a workflow: fetched, verified and calibrated, wherever Snakemake is started."""

import hashlib
import pickle

import numpy as np
import pandas as pd
import pytest
import yaml

from tests.project import ROOT, TINY, Project, copy_sources
from tests.unit.data.faulty_server import FaultyServer

SNAKEFILE = ("--snakefile", str(ROOT / "Snakefile"))


@pytest.fixture
def elsewhere(tmp_path):
    """A folder without sources."""
    return Project(tmp_path)


def overlay(name):
    return ("--configfile", str(ROOT / "configs" / f"{name}.yaml"))


def test_sixty_two_networks_are_planned_and_nothing_is_trained(elsewhere):
    planned = elsewhere.planned(*SNAKEFILE, *overlay("published-networks"))
    assert planned["import_logits"] == planned["calibrate"] == 62 + 46  # 46 of them in halves
    assert planned["recover"] == 53  # pairs of dataset and model
    assert not planned.keys() & {"train", "fetch_data", "training_figures"}


def test_the_overconfident_networks_are_planned(elsewhere):
    planned = elsewhere.planned(*SNAKEFILE, *overlay("cifar10-overfit-cpu"))
    assert planned["train"] == planned["calibrate"] == 30
    assert "import_logits" not in planned


def test_one_file_without_validation_samples_makes_two_runs_of_one_network(tmp_path):
    """A collection is one TOML file; its file is fetched from a loopback server, once."""
    random = np.random.RandomState(0)
    labels = random.randint(0, 3, 400)
    logits = (2 * np.eye(3)[labels] + random.normal(size=(400, 3))).astype(np.float32)
    content = pickle.dumps((logits, labels), 4)
    project = Project(tmp_path / "project")
    copy_sources(project.root)
    checksum = f"sha256:{hashlib.sha256(content).hexdigest()}"
    with FaultyServer() as server:
        route = server.add("made.p", content)
        (project.root / "focalcal/data/networks/made.toml").write_text(
            f'title = "Made"\ndataset = "d"\nseed = 1\nsplit = "halves"\nbase = "{server.base}"\n'
            f'[[networks]]\nmodel = "net"\nloss = "not-stated"\n'
            f'files = [{{ name = "made.p", size = {len(content)}, checksum = "{checksum}" }}]\n',
            encoding="utf-8",
        )
        config = {"runs": [], "published": ["made"], "calibration": TINY["calibration"]}
        (project.root / "made.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        targets = ["results/tables/effects.csv", "results/tables/runs.csv"]
        cache = f"cache={tmp_path / 'cache'}"
        project.snakemake("--configfile", "made.yaml", "--config", cache, "--", *targets)
    assert len(route.requests) == 1
    runs = pd.read_csv(project.root / targets[1])
    assert runs[["loss", "seed", "published"]].to_numpy().tolist() == [
        ["not-stated", 1, "made"],
        ["not-stated", 2, "made"],
    ]
    effects = pd.read_csv(project.root / targets[0])
    single = effects[(effects["scope"] == "network") & (effects["metric"] == "nll")]
    assert len(single)
    assert set(zip(single["networks"], single["runs"], strict=True)) == {(1, 2)}
    first, second = (
        np.load(project.root / f"results/runs/d/net/not-stated/seed{seed}/logits.npz") for seed in (1, 2)
    )
    np.testing.assert_array_equal(first["val_logits"], second["test_logits"])
    np.testing.assert_array_equal(first["test_labels"], second["val_labels"])


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
