"""What `make test` does before its tests, and what a skip means in CI."""

import os
import shutil
import subprocess
import sys

import pytest

from tests import programs
from tests.project import ROOT

SKIPS = """
import pytest

@pytest.fixture(scope="session")
def browser():
    pytest.skip("Chromium is not installed")

def test_browser(browser): ...

def test_opted_in():
    pytest.skip("FOCALCAL_REFERENCE_DATA is not set")
"""


@pytest.fixture
def commands(monkeypatch):
    """The commands that would be run, on a machine where everything is missing."""
    run = []

    def record(command, **_options):
        run.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(programs, "find_chromium", lambda: None)
    monkeypatch.setattr(programs.cluster, "is_installed", lambda: False)
    monkeypatch.setattr(programs.cluster, "is_site", lambda: False)
    monkeypatch.setattr(programs.subprocess, "run", record)
    monkeypatch.setattr(programs.shutil, "which", lambda name: f"/usr/bin/{name}")
    return run


def test_an_ordinary_user_changes_nothing_and_is_told(commands, monkeypatch, capsys):
    monkeypatch.setattr(programs.os, "geteuid", lambda: 1000)
    assert programs.main() == 0
    assert commands == []
    assert "chromium, for the tests of the report" in capsys.readouterr().out


def test_root_installs_everything_at_once_and_is_told(commands, monkeypatch, capsys):
    monkeypatch.setattr(programs.os, "geteuid", lambda: 0)
    assert programs.main() == 0
    assert [command[3] for command in commands] == ["update", "install"]
    assert {"chromium", "slurmctld", "munge"} <= set(commands[1])
    assert "Running: apt-get" in capsys.readouterr().out


def test_a_machine_of_a_cluster_gets_no_slurm(commands, monkeypatch):
    monkeypatch.setattr(programs.os, "geteuid", lambda: 0)
    monkeypatch.setattr(programs.cluster, "is_site", lambda: True)
    assert programs.main() == 0
    assert "slurmctld" not in commands[1]


@pytest.mark.parametrize(
    ("value", "code", "summary"), [("true", 1, "1 skipped, 1 error"), ("", 0, "2 skipped")]
)
def test_a_skip_is_a_failure_in_ci(tmp_path, value, code, summary):
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_skips.py").write_text(SKIPS)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path)]
    environment = {**os.environ, "CI": value}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout
    assert summary in done.stdout
