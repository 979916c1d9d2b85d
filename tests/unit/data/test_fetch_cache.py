import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from focalcal.common.errors import UserError
from focalcal.data import fetch
from focalcal.data.fetch import obtain
from focalcal.data.registry import PROJECT_ROOT
from tests.unit.data import official_formats as formats
from tests.unit.data.conftest import file_entry
from tests.unit.data.sources import CONTENT, entry_of, http


def test_an_unusable_cache_is_reported(quick, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(
        UserError, match=r"cache folder .* cannot be used .*config key 'cache' or .*FOCALCAL_CACHE"
    ):
        obtain("set", entry_of(http("http://first.invalid/")), tmp_path / "file", quick)


def test_a_complete_cache_need_not_be_writable(server, quick, tmp_path, monkeypatch):
    server.add("data.bin", CONTENT)
    entry = entry_of(http(server.base))
    obtain("set", entry, tmp_path, quick)

    def no_writing(*_arguments, **_options):
        raise PermissionError

    monkeypatch.setattr(fetch, "FileLock", no_writing)
    monkeypatch.setattr(Path, "mkdir", no_writing)
    assert obtain("set", entry, tmp_path, quick).source == server.base


JOB = """
import json, logging, sys
from pathlib import Path
from focalcal.data.download import DownloadPolicy
from focalcal.data.fetch import obtain
logging.basicConfig(level=logging.INFO, format="%(message)s")
policy = DownloadPolicy(timeout=5.0, attempts=3, first_pause=0.01)
print(obtain("set", json.loads(sys.argv[1]), Path(sys.argv[2]), policy).source)
"""


def start_job(entry, cache):
    return subprocess.Popen(
        [sys.executable, "-c", JOB, json.dumps(entry), str(cache)],
        cwd=PROJECT_ROOT,
        env={**os.environ, "no_proxy": "127.0.0.1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(condition, seconds=60):
    """Return whether `condition` becomes true within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    return condition()


def test_two_jobs_at_once_fetch_once(server, tmp_path):
    gate = threading.Event()
    route = server.add("data.bin", CONTENT, gate=gate)
    entry = entry_of(http(server.base))
    first = start_job(entry, tmp_path)
    assert wait_for(lambda: route.requests)
    second = start_job(entry, tmp_path)
    assert second.stderr.readline() == "set: waiting for another job that is fetching it\n"
    gate.set()
    outputs = [job.communicate(timeout=60) for job in (first, second)]
    assert [job.returncode for job in (first, second)] == [0, 0], outputs
    assert [output.strip() for output, _ in outputs] == [server.base] * 2
    assert len(route.requests) == 1


@pytest.mark.slow
def test_killed_twenty_times_the_download_still_ends_in_the_right_file(server, tmp_path):
    """Download and conversion are killed at random moments; each file is correct or absent afterwards."""
    payload = np.random.RandomState(1).bytes(600_000)
    archive = formats.tar_bytes({"a/data.bin": payload}, "w")
    route = server.add("a.tar", archive, pause=0.0005)
    entry = entry_of(
        http(server.base, archives=["a.tar"], convert="members"),
        files=[file_entry("data.bin", payload)],
        archives=[file_entry("a.tar", archive)],
    )
    good = {"data.bin": payload, "a.tar": archive}
    moments = random.Random(5)  # noqa: S311  for moments, not secrets
    folder = tmp_path / "set"
    kills = interrupted = 0
    while kills < 20:
        seen = len(route.requests)
        job = start_job(entry, tmp_path)
        # Most kills hit the transfer, which takes about half a second; some come before or after it.
        if moments.random() < 0.8:
            wait_for(lambda: len(route.requests) > seen or job.poll() is not None)  # noqa: B023  called at once
        time.sleep(moments.uniform(0, 0.5))
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
            kills += 1
        job.communicate()
        for name, content in good.items():
            if (folder / name).exists():
                assert (folder / name).read_bytes() == content
        if (folder / "a.tar.partial").exists():
            assert archive.startswith((folder / "a.tar.partial").read_bytes())
            interrupted += 1
        if (folder / "data.bin").exists():
            # Start over, so that the next kill has something to interrupt.
            for name in good:
                (folder / name).unlink(missing_ok=True)
    final = start_job(entry, tmp_path)
    _, errors = final.communicate(timeout=60)
    assert final.returncode == 0, errors
    assert (folder / "data.bin").read_bytes() == payload
    assert list(folder.glob(".work-*")) == []
    assert interrupted >= 5, "the kills missed the transfer"
    assert any(request is not None for request in route.requests), "nothing was resumed"
