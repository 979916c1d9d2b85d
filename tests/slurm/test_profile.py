"""The resources that the profile requests, as a dry run shows them; needs no cluster."""

import re

import pytest
import yaml

from tests.project import ROOT, Project, copy_sources

PROFILES = ROOT / "profiles"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the sources."""
    project = Project(tmp_path_factory.mktemp("profile") / "project")
    copy_sources(project.root)
    return project


@pytest.fixture(scope="module")
def full_grid(project):
    """The dry run of the largest paper grid, as (rule, resources) of each job."""
    overlay = "configs/komisarenko2024.yaml"
    output = project.snakemake("-n", "--profile", "profiles/slurm", "--configfile", overlay)
    blocks = re.findall(
        r"^ *(?:local)?rule (\w+):\n(.*?)^ *resources: (.*?)$", output, re.MULTILINE | re.DOTALL
    )
    return [(rule, dict(item.split("=", 1) for item in line.split(", "))) for rule, _, line in blocks]


def test_only_training_asks_for_a_gpu(full_grid):
    assert len([rule for rule, _ in full_grid if rule == "train"]) == 120
    for rule, resources in full_grid:
        assert resources.get("gpu") == ("1" if rule == "train" else None), rule


def test_every_job_has_memory_and_a_time_limit(full_grid):
    for rule, resources in full_grid:
        assert int(resources["mem_mb"]) >= 400, f"{rule}: Snakemake alone needs more"
        assert int(resources["runtime"]) > 0


def test_no_job_asks_for_more_than_the_documentation_says(full_grid):
    """The table in docs/slurm.md, section 'What jobs ask for': MB and minutes of a first attempt."""
    documented = {"fetch_data": (4000, 240), "train": (8000, 480), "collect": (8000, 30)}
    for rule, resources in full_grid:
        if rule != "all":
            memory, minutes = documented.get(rule, (4000, 30))
            assert int(resources["mem_mb"]) <= memory, rule
            assert int(resources["runtime"]) <= minutes, rule


def test_human_labels_come_from_outside_the_submission_of_a_run(project):
    """A submission that depends on a job that depends on the same submission cannot be scheduled."""
    overlay = project.root / "human.yaml"
    overlay.write_text("recovery: {human_labels: {cifar10: download}}\n", encoding="utf-8")
    configs = ("--configfile", "configs/cifar10-cpu.yaml", "human.yaml")
    planned = project.planned("--profile", "profiles/slurm", *configs)
    assert planned["recovery_human"] == 1


def test_data_all_fetches_what_nodes_without_internet_access_cannot(project):
    overlay = project.root / "human.yaml"
    overlay.write_text("recovery: {human_labels: {cifar10: download}}\n", encoding="utf-8")
    configs = ("--configfile", "configs/published-networks.yaml", "human.yaml")
    assert project.planned("data_all", *configs) == {
        "data_all": 1,
        "import_logits": 108,
        "recovery_human": 1,
    }


def test_training_is_warned_before_its_limit(full_grid):
    warnings = {resources.get("slurm_extra") for rule, resources in full_grid if rule == "train"}
    assert warnings == {"--signal=TERM@120"}


def test_profile_names_only_rules_that_exist():
    profile = yaml.safe_load((PROFILES / "slurm" / "config.yaml").read_text("utf-8"))
    rules = set()
    for path in (ROOT / "rules").glob("*.smk"):
        rules |= set(re.findall(r"^rule (\w+):", path.read_text("utf-8"), re.MULTILINE))
    assert {*profile["groups"], *profile["set-resources"]} <= rules
