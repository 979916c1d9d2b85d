import errno
import hashlib
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from focalcal.calibration.kernels import compiled

ROOT = Path(__file__).parents[3]
FIT = """
from focalcal.calibration.calibrators import FocalLossTemperature
print(FocalLossTemperature(2.0).fit([[0.0, 1.0, 3.0], [2.0, 0.5, 0.1], [0.0, 1.0, 1.5]], [2, 0, 1]).score_)
"""


@pytest.fixture
def caches(tmp_path, monkeypatch):
    """Folders for all three variables: downloads, which may be shared, numba's, and the user's caches."""
    monkeypatch.setenv("FOCALCAL_CACHE", str(tmp_path / "downloads"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    return tmp_path


def test_code_folder_is_the_users_own_and_never_that_of_downloads(caches, monkeypatch):
    assert compiled.code_folder().parent == caches / "numba" / "compiled"
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    assert compiled.code_folder().parent == caches / "user" / "focalcal" / "compiled"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(caches / "home"))
    assert compiled.code_folder().parent == caches / "home" / ".cache" / "focalcal" / "compiled"
    assert not (caches / "downloads").exists()


def test_an_unwritable_folder_is_passed_over(caches, monkeypatch):
    (caches / "numba").write_text("a file, not a folder")
    assert compiled.code_folder().parent == caches / "user" / "focalcal" / "compiled"
    monkeypatch.setenv("XDG_CACHE_HOME", str(caches / "numba"))
    assert compiled.code_folder() is None


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o750])
def test_a_folder_that_others_can_enter_is_passed_over(caches, mode):
    private = compiled.code_folder()
    assert private.stat().st_mode & 0o777 == 0o700
    private.chmod(mode)
    assert compiled.code_folder().parent == caches / "user" / "focalcal" / "compiled"


@pytest.mark.usefixtures("caches")
def test_a_folder_of_another_user_is_passed_over(monkeypatch):
    folder = compiled.code_folder()
    monkeypatch.setattr(compiled.os, "getuid", lambda: folder.stat().st_uid + 1)
    assert compiled.code_folder() is None


def twice(x):
    return 2.0 * x


class Planted:
    """What an attacker would pickle: loading it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def fill_cache():
    """Compile `twice`; return the one entry that this leaves."""
    assert compiled.compile_cached(twice)(2.0) == 4.0
    (entry,) = compiled.code_folder().glob("twice-*.code")
    return entry


def assert_compiled_again():
    """Assert that a damaged entry is neither used nor fatal, and that a good one replaces it."""
    kernel = compiled.compile_cached(twice)
    assert kernel(2.0) == 4.0
    assert not kernel.stats.cache_hits
    kernel = compiled.compile_cached(twice)
    assert kernel(2.0) == 4.0
    assert sum(kernel.stats.cache_hits.values()) == 1


@pytest.mark.usefixtures("caches")
@pytest.mark.parametrize(
    "damage",
    [
        lambda _content: b"",
        lambda content: content[:20],
        lambda content: content[:-1],
        lambda content: content[:1000] + bytes([content[1000] ^ 1]) + content[1001:],
        lambda content: bytes([content[0] ^ 1]) + content[1:],
        lambda _content: b"not code",
    ],
    ids=["empty", "no code", "cut", "one bit of code", "one bit of the checksum", "foreign"],
)
def test_a_damaged_entry_is_compiled_again(damage):
    entry = fill_cache()
    entry.write_bytes(damage(entry.read_bytes()))
    assert_compiled_again()


def test_a_pickle_without_checksum_does_not_run(caches):
    entry = fill_cache()
    entry.write_bytes(pickle.dumps(Planted(caches / "ran")))
    assert_compiled_again()
    assert not (caches / "ran").exists()


def test_an_entry_of_another_user_does_not_run(caches, monkeypatch):
    """A valid entry that another user moved here: its checksum is right, its owner is not."""
    entry, owner = fill_cache(), os.getuid()
    code = pickle.dumps(Planted(caches / "ran"))
    entry.write_bytes(hashlib.sha256(code).digest() + code)
    monkeypatch.setattr(compiled.os, "fstat", lambda _file: os.stat_result([0] * 4 + [owner + 1] + [0] * 5))
    kernel = compiled.compile_cached(twice)
    assert kernel(2.0) == 4.0
    assert not (caches / "ran").exists()


@pytest.mark.usefixtures("caches")
def test_a_full_disk_costs_only_the_cache(monkeypatch):
    def full(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert compiled.compile_cached(twice)(2.0) == 4.0
    assert list(compiled.code_folder().iterdir()) == []


@pytest.mark.usefixtures("caches")
def test_a_folder_that_vanishes_costs_only_the_cache():
    kernel = compiled.compile_cached(twice)
    shutil.rmtree(compiled.code_folder())
    assert kernel(2.0) == 4.0


def test_the_folder_changes_with_the_processor_and_the_sources(tmp_path, monkeypatch):
    before = compiled._kernel_digest()
    assert compiled._kernel_digest() == before
    monkeypatch.setattr(compiled.binding, "get_host_cpu_name", lambda: "other")
    assert compiled._kernel_digest() != before
    monkeypatch.undo()
    sources = tmp_path / "kernels"
    shutil.copytree(Path(compiled.__file__).parent, sources)
    monkeypatch.setattr(compiled, "__file__", str(sources / "compiled.py"))
    assert compiled._kernel_digest() == before
    (sources / "binned.py").write_text("edited")
    assert compiled._kernel_digest() != before


@pytest.mark.slow
def test_processes_that_compile_at_the_same_time_agree(tmp_path):
    """Two processes find the cache empty, compile and fill it; a third reads it. The tree stays clean."""
    tree = set((ROOT / "focalcal" / "calibration" / "kernels").rglob("*"))
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", FIT]
    processes = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    outputs = [process.communicate(timeout=600)[0] for process in processes]
    third = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=600)
    assert outputs[0] == outputs[1] == third.stdout
    assert len(list(tmp_path.rglob("*.code"))) == 1
    assert set((ROOT / "focalcal" / "calibration" / "kernels").rglob("*")) == tree
