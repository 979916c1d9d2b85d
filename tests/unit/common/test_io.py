import os
import signal
import subprocess
import sys
import time

import pytest

from focalcal.common.io import atomic_output, write_text
from focalcal.config.provenance import ROOT

WRITER = """
import sys, time
from focalcal.common.io import atomic_output
with atomic_output(sys.argv[1]) as partial, partial.open("w") as target:
    target.write("half")
    target.flush()
    print("writing", flush=True)
    time.sleep(60)
"""


def test_error_keeps_the_old_file_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")

    def write_half():
        with atomic_output(path) as partial:
            partial.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_kill_during_a_write_leaves_no_half_file(tmp_path, number):
    path = tmp_path / "file.npz"
    path.write_text("old")
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writer:
        assert writer.stdout.readline() == "writing\n"
        writer.send_signal(number)
        writer.wait(timeout=30)
    assert path.read_text() == "old"
    write_text(path, "new")
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_of_a_live_writer_is_left_alone(tmp_path):
    path = tmp_path / "file.txt"
    with atomic_output(path) as first:
        write_text(path, "second")
        first.write_text("first")
    assert path.read_text() == "first"


def test_new_file_has_ordinary_permissions(tmp_path):
    umask = os.umask(0o022)
    try:
        write_text(tmp_path / "file.txt", "x")
    finally:
        os.umask(umask)
    assert (tmp_path / "file.txt").stat().st_mode & 0o777 == 0o644


def test_readers_never_see_an_empty_file(tmp_path):
    path = tmp_path / "file.txt"
    write_text(path, "0" * 100_000)
    deadline = time.monotonic() + 0.5
    reader = (
        "import sys, pathlib\n"
        "while not pathlib.Path(sys.argv[2]).exists():\n"
        "    assert len(pathlib.Path(sys.argv[1]).read_text()) == 100000\n"
    )
    stop = tmp_path / "stop"
    with subprocess.Popen([sys.executable, "-c", reader, str(path), str(stop)]) as process:
        while time.monotonic() < deadline:
            write_text(path, "1" * 100_000)
        stop.touch()
        assert process.wait(timeout=30) == 0
