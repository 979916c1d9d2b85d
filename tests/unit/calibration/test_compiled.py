"""Compiled code is kept between processes, only where nobody else can write, and never needed."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.kernels import compiled
from tests.project import ROOT

FIT = """
from focalcal.calibration.calibrators import FocalLossTemperature
from focalcal.calibration.kernels.compiled import focal_losses_kernel
print(FocalLossTemperature(2.0).fit([[0.0, 1.0, 3.0], [2.0, 0.5, 0.1], [0.0, 1.0, 1.5]], [2, 0, 1]).score_)
print(sum(focal_losses_kernel().stats.cache_hits.values()))
"""


@pytest.fixture
def caches(tmp_path, monkeypatch):
    """Folders for numba's code and the user's caches."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    return tmp_path


def used_cache():
    """Return which of the two caches is used."""
    folder = compiled.code_folder()
    return folder and folder.parents[1].name


def test_the_folder_is_the_users_own(caches, monkeypatch):
    assert compiled.code_folder().stat().st_mode & 0o777 == 0o700
    assert used_cache() == "numba"
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    assert used_cache() == "user"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", str(caches / "home"))
    assert compiled.code_folder().parents[2] == caches / "home"
    monkeypatch.setenv("HOME", "/dev/null")
    assert compiled.code_folder() is None


@pytest.mark.parametrize(
    ("level", "mode"), [(0, 0o750), (0, 0o707), (1, 0o711), (2, 0o777), (2, 0o770)], ids=str
)
@pytest.mark.usefixtures("caches")
def test_where_others_could_write_no_code_is_read(level, mode):
    folder = compiled.code_folder()
    [folder, *folder.parents][level].chmod(mode)
    assert used_cache() == "user"


@pytest.mark.parametrize("planted", ["folder", "link"])
def test_what_another_user_planted_is_not_used(caches, monkeypatch, planted):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(caches))
    caches.chmod(0o1777)
    name, digest, uid = "focalcal-compiled", compiled._kernel_digest(), os.getuid()

    def plant():
        Path("elsewhere" if planted == "link" else name, digest).mkdir(mode=0o700, parents=True)
        Path(name).chmod(0o700) if planted == "folder" else Path(name).symlink_to("elsewhere")

    monkeypatch.chdir(caches)
    if uid != 0:  # only root can be somebody else
        monkeypatch.setattr(os, "getuid", lambda: uid + 1)
        monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
        plant()
    elif (child := os.fork()) == 0:
        os.setuid(12345)
        plant()
        os._exit(0)
    else:
        assert os.waitpid(child, 0)[1] == 0
    folder = compiled.code_folder()
    assert folder is None if uid else folder.parents[1] == caches / "user"


def twice(x):
    return 2.0 * x


def hits():
    """Return how often `twice` is loaded rather than compiled, and check what it computes."""
    kernel = compiled.compile_cached(twice, "f8(f8)")
    assert kernel(2.0) == 4.0
    return sum(kernel.stats.cache_hits.values())


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.usefixtures("caches")
def test_a_file_that_was_cut_off_is_compiled_again(suffix):
    assert (hits(), hits()) == (0, 1)
    (entry,) = compiled.code_folder().rglob(f"*.{suffix}")
    entry.write_bytes(b"")
    assert (hits(), hits(), hits()) == (0, 0, 1)


@pytest.mark.usefixtures("caches")
def test_a_full_disk_costs_only_the_cache(monkeypatch):
    def full(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert hits() == 0


def test_the_folder_changes_with_the_processor_and_the_sources(tmp_path, monkeypatch):
    before = compiled._kernel_digest()
    monkeypatch.setattr(compiled.binding, "get_host_cpu_name", lambda: "other")
    assert compiled._kernel_digest() != before
    monkeypatch.undo()
    monkeypatch.setattr(compiled, "__file__", str(tmp_path / "compiled.py"))
    assert compiled._kernel_digest() != before


def test_a_grid_may_be_a_view_of_any_numbers():
    objective = Objective(np.eye(3), [0, 1, 1], threads=1)
    temperatures = np.arange(1.0, 9.0)[::-2]
    temperatures.flags.writeable = False
    expected = objective.surfaces([0.0, 1.0], temperatures.tolist())["nll"]
    assert np.array_equal(Objective(np.eye(3), [0, 1, 1]).surfaces([0, 1], temperatures)["nll"], expected)


@pytest.mark.slow
def test_processes_that_compile_at_the_same_time_agree(tmp_path):
    """Two processes find the cache empty, compile and fill it; a third reads it."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", FIT]
    processes = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    outputs = [process.communicate(timeout=600)[0].split() for process in processes]
    third = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=600)
    score, loaded = third.stdout.split()
    assert loaded == "1"
    assert [output[0] for output in outputs] == [score, score]
