"""What jobs run in: variables, and conda environments with the versions of requirements.txt."""

import os
import re
from pathlib import Path

import pytest
import yaml

from focalcal.common.errors import UserError
from focalcal.workflow import environment

ROOT = Path(__file__).resolve().parents[3]
ENVIRONMENTS = sorted((ROOT / "envs").glob("*.yaml"))
PINS = dict(re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "requirements.txt").read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=lambda path: path.stem)
def test_an_environment_has_the_pins_of_requirements(path):
    *_, pip = yaml.safe_load(path.read_text("utf-8"))["dependencies"]
    pins = dict(line.split("==") for line in pip["pip"])
    assert pins
    assert pins.items() <= PINS.items()


def test_every_requirement_is_pinned():
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    assert all("==" in line for line in lines if line and not line.startswith("#"))


def test_every_environment_is_used_by_a_rule():
    rules = "".join(path.read_text("utf-8") for path in (ROOT / "rules").glob("*.smk"))
    assert {f"../envs/{path.name}" for path in ENVIRONMENTS} == set(re.findall(r'"(\.\./envs/[^"]+)"', rules))


@pytest.mark.parametrize("folder", ["/a{b}", "/a:b"])
def test_a_checkout_whose_path_would_be_misread_is_refused(folder):
    with pytest.raises(UserError, match=r"the path of this checkout, '/a.*move the checkout"):
        environment.set_job_environment(Path(folder), None)


@pytest.mark.parametrize("inherited", [None, "", "/theirs", ":/theirs::"])
def test_jobs_import_from_this_checkout_and_never_from_the_working_directory(monkeypatch, inherited):
    for name in ("PATH", "PYTHONSAFEPATH", "FOCALCAL_CACHE"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    if inherited is None:
        monkeypatch.delenv("PYTHONPATH", raising=False)
    else:
        monkeypatch.setenv("PYTHONPATH", inherited)
    environment.set_job_environment(Path("/ours"), None)
    assert os.environ["PYTHONSAFEPATH"] == "1"
    assert os.environ["PYTHONPATH"] == ("/ours:/theirs" if inherited else "/ours")
