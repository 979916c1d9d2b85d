import logging
from dataclasses import replace

import pytest

from focalcal.common.errors import UserError
from focalcal.data.fetch import obtain
from tests.unit.data import official_formats as formats
from tests.unit.data.conftest import file_entry
from tests.unit.data.sources import CONTENT, entry_of, http, visible_files


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


def test_no_other_text_of_a_shared_cache_is_taken_for_the_source(server, quick, tmp_path):
    server.add("data.bin", CONTENT)
    entry = entry_of(http(server.base))
    note = obtain("set", entry, tmp_path, quick).folder / "served-by.txt"
    private = tmp_path / "private.txt"
    private.write_bytes(b"a secret \x1b[2J\xff")
    note.unlink()
    note.symlink_to(private)
    assert obtain("set", entry, tmp_path, quick).source == "placed in the cache by hand"


def test_a_damaged_cache_is_repaired_and_reported(server, quick, tmp_path, caplog):
    server.add("data.bin", CONTENT)
    entry = entry_of(http(server.base))
    obtain("set", entry, tmp_path, quick)
    (tmp_path / "set" / "data.bin").write_bytes(CONTENT[:-1] + b"x")
    obtained = obtain("set", entry, tmp_path, quick)
    assert (obtained.folder / "data.bin").read_bytes() == CONTENT
    assert "instead of" in caplog.text
    assert "deleted" in caplog.text


def test_offline_one_error_lists_every_source_and_how_to_place_files_by_hand(quick, tmp_path, monkeypatch):
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


def test_a_slow_source_is_left_for_a_faster_one(server, quick, tmp_path, caplog):
    slow = server.add("slow/data.bin", CONTENT, pause=0.02)
    server.add("fast/data.bin", CONTENT)
    policy = replace(quick, slow_after=0.2, slowest_rate=1e5)
    entry = entry_of(http(server.base + "slow/"), http(server.base + "fast/"))
    obtained = obtain("set", entry, tmp_path, policy)
    assert obtained.source == server.base + "fast/"
    assert "kB/s; trying other sources first" in caplog.text
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
    server.add("slow.tar", slow, pause=0.02)
    server.add("fast.tgz", fast)
    entry = entry_of(
        http(server.base, archives=["slow.tar"], convert="members"),
        http(server.base, archives=["fast.tgz"], convert="members"),
        archives=[file_entry("slow.tar", slow), file_entry("fast.tgz", fast)],
    )
    obtain("set", entry, tmp_path, replace(quick, slow_after=0.1, slowest_rate=1e5))
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
    """An archive may match a wrong registry entry, or its conversion may fail."""
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
        (formats.tar_bytes({"other": b"x"}), "it does not contain data.bin"),
        (b"no archive at all", "is damaged"),
    ],
    ids=["other member", "no archive"],
)
def test_a_bad_archive_is_reported(server, quick, tmp_path, content, reason):
    server.add("a.tgz", content)
    source = http(server.base, archives=["a.tgz"], convert="members")
    with pytest.raises(UserError, match=reason):
        obtain("set", entry_of(source, archives=[file_entry("a.tgz", content)]), tmp_path, quick)
    assert not (tmp_path / "set" / "data.bin").exists()
    assert list((tmp_path / "set").glob(".work-*")) == []
