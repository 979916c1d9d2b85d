import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

from focalcal.calibration.kernels import compiled

ROOT = Path(__file__).parents[3]
FIT = """
from focalcal.calibration.calibrators import FocalLossTemperature
print(FocalLossTemperature(2.0).fit([[0.0, 1.0, 3.0], [2.0, 0.5, 0.1], [0.0, 1.0, 1.5]], [2, 0, 1]).score_)
"""


def test_code_folder_follows_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    monkeypatch.setenv("FOCALCAL_CACHE", str(tmp_path / "ours"))
    assert compiled.code_folder().parent == tmp_path / "ours" / "compiled"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    assert compiled.code_folder().parent == tmp_path / "numba" / "compiled"


def test_an_unwritable_folder_is_passed_over(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setenv("FOCALCAL_CACHE", str(tmp_path / "ours"))
    assert compiled.code_folder().parent == tmp_path / "ours" / "compiled"
    monkeypatch.setenv("FOCALCAL_CACHE", str(tmp_path / "file"))
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    assert compiled.code_folder() is None


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_folder_that_others_can_write_is_passed_over(tmp_path, monkeypatch, mode):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "shared"))
    monkeypatch.setenv("FOCALCAL_CACHE", str(tmp_path / "ours"))
    shared = compiled.code_folder()
    assert shared.stat().st_mode & 0o777 == 0o700
    shared.chmod(mode)
    assert compiled.code_folder().parent == tmp_path / "ours" / "compiled"


def test_a_folder_of_another_user_is_passed_over(tmp_path, monkeypatch):
    for name in ("NUMBA_CACHE_DIR", "FOCALCAL_CACHE", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    assert compiled.code_folder() is not None
    monkeypatch.setattr(compiled.os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    assert compiled.code_folder() is None


def test_the_folder_changes_with_the_processor_and_the_sources(tmp_path, monkeypatch):
    before = compiled._kernel_digest()
    assert compiled._kernel_digest() == before
    monkeypatch.setattr(compiled.llvmlite.binding, "get_host_cpu_name", lambda: "other")
    assert compiled._kernel_digest() != before
    monkeypatch.undo()
    sources = tmp_path / "kernels"
    shutil.copytree(Path(compiled.__file__).parent, sources)
    monkeypatch.setattr(compiled, "__file__", str(sources / "compiled.py"))
    assert compiled._kernel_digest() == before
    (sources / "binned.py").write_text("edited")
    assert compiled._kernel_digest() != before


def test_numba_settings_are_left_as_they_were(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    before = compiled.numba.config.CACHE_DIR
    compiled.compile_cached(compiled.surfaces.fill_focal_losses)
    assert before == compiled.numba.config.CACHE_DIR


@pytest.mark.slow
def test_processes_that_compile_at_the_same_time_agree(tmp_path):
    """Two processes find the cache empty, compile and fill it; a third reads it. The tree stays clean."""
    tree = set((ROOT / "focalcal" / "calibration").rglob("*.nb*"))
    environment = {**os.environ, "FOCALCAL_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT)}
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-c", FIT]
    processes = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    outputs = [process.communicate(timeout=600)[0] for process in processes]
    third = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=600)
    assert outputs[0] == outputs[1] == third.stdout
    assert len(list(tmp_path.rglob("*.nbc"))) == 1
    assert set((ROOT / "focalcal" / "calibration").rglob("*.nb*")) == tree


@pytest.mark.slow
def test_another_clone_loads_what_the_first_one_compiled(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    source = Path(compiled.surfaces.__file__)
    clone = tmp_path / "clone" / source.name
    clone.parent.mkdir()
    shutil.copy(source, clone)
    function = compiled.surfaces.fill_focal_losses
    cloned = FunctionType(function.__code__.replace(co_filename=str(clone)), function.__globals__)
    samples = (np.array([[1.0]]), np.array([2.0]), np.array([0.0]), np.array([0.0]))
    losses, hits = [], []
    for source_of_clone in (function, cloned):
        kernel, out = compiled.compile_cached(source_of_clone), np.empty(1)
        kernel(samples, (np.array([0]), np.array([1.0])), 2.0, out)
        losses.append(out[0])
        hits.append(sum(kernel.stats.cache_hits.values()))
    assert hits == [0, 1]
    assert losses[0] == losses[1]
