"""What cannot be run here is consistent with the rest: container, workflows of the forge, metadata."""

import re
import tomllib

import pytest
import yaml

from tests.project import ROOT
from tools import lock

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def steps_of(path):
    jobs = yaml.safe_load(path.read_text("utf-8"))["jobs"].values()
    return [step for job in jobs for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_what_exists(path):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    for step in steps_of(path):
        assert step.keys() & {"run", "uses"}
        assert re.fullmatch(r"[\w-]+/[\w-]+@\S+", step.get("uses", "a/b@c"))
        command = step.get("run", "")
        assert set(re.findall(r"^make (\w[\w-]*)", command)) <= set(targets)
        for name in re.findall(r"\b(?:tests|tools)/[\w/.]+", command):
            assert (ROOT / name).exists(), name


def test_only_what_publishes_may_write_or_ask_for_an_identity():
    for path in WORKFLOWS:
        content = yaml.safe_load(path.read_text("utf-8"))
        granted = content["permissions"].copy()
        for job in content["jobs"].values():
            granted |= job.get("permissions", {})
        assert granted.pop("contents") == "read"
        assert not granted or path.stem in {"pages", "release"}


def test_the_container_installs_the_lock_and_the_named_torch():
    text = (ROOT / "Dockerfile").read_text("utf-8")
    commands = re.findall(r"^([A-Z]+) (.*(?:\\\n.*)*)", text, re.MULTILINE)
    assert [name for name, _ in commands][:2] == ["FROM", "ARG"]
    copied = [word for name, rest in commands if name == "COPY" for word in rest.split()[:-1]]
    assert all((ROOT / word).exists() for word in copied)
    assert {lock.INPUT.name, lock.LOCK.name} < set(copied)
    assert "--require-hashes --requirement requirements.lock" in text
    pattern = re.search(r'grep --extended-regexp "(.*?)"', text)[1]
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    assert [line.partition("==")[0] for line in lines if re.search(pattern, line)] == ["torch", "torchvision"]


def test_what_make_installs_can_be_installed_without_it():
    page = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
    commands = re.findall(
        r"^\t\$\(BIN\)/(pip install .*)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE
    )
    needed = [command.replace("--quiet ", "") for command in commands if " uv" not in command]
    assert len(needed) == 3
    assert [line.strip() for line in page.splitlines() if line.strip() in needed] == needed


def test_the_named_pythons_are_those_that_are_tested():
    listed = {text.rpartition(" ")[2] for text in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", text)}
    matrix = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text("utf-8"))["jobs"]["python"]
    assert listed == {"3.11", *matrix["strategy"]["matrix"]["python"]}
    assert PROJECT["requires-python"] == f">={min(listed)}"
