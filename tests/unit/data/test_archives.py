import io
import tarfile
import zipfile

import pytest

from focalcal.data import archives
from focalcal.data.errors import ArchiveError
from tests.unit.data.official_formats import gz, tar_bytes


def write_tar(path, *members):
    with tarfile.open(path, "w") as archive:
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def member(name, kind=tarfile.REGTYPE, link=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def write_zip(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def everything(_name):
    return True


def files_below(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


CONTENT = {"top.txt": b"1", "a/b/deep.bin": b"\0" * 5000}


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_tar_is_extracted(tmp_path, mode):
    (tmp_path / "x").write_bytes(tar_bytes(CONTENT, mode))
    written = archives.extract(tmp_path / "x", tmp_path / "out", everything)
    assert files_below(tmp_path / "out") == CONTENT
    assert sorted(written) == sorted(tmp_path / "out" / name for name in CONTENT)


UNSAFE = ["../escape", "a/../../escape", "/etc/escape", "a\\..\\escape", ".."]


@pytest.mark.parametrize("name", UNSAFE)
def test_tar_paths_cannot_escape(tmp_path, name):
    write_tar(tmp_path / "x", (member(name), b"evil"))
    with pytest.raises(ArchiveError, match="x holds the unsafe path"):
        archives.extract(tmp_path / "x", tmp_path / "out", everything)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["x"]


@pytest.mark.parametrize(
    "kind",
    [
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.CHRTYPE,
        tarfile.BLKTYPE,
        tarfile.FIFOTYPE,
        tarfile.GNUTYPE_SPARSE,
    ],
)
def test_tar_holds_plain_files_only(tmp_path, kind):
    with tarfile.open(tmp_path / "x", "w") as archive:
        archive.addfile(member("link", kind, "/etc/passwd"))
    with pytest.raises(ArchiveError, match=r"link or device|damaged"):
        archives.extract(tmp_path / "x", tmp_path / "out", everything)
    assert not (tmp_path / "out" / "link").exists()


def test_an_unsafe_member_is_refused_even_if_unwanted(tmp_path):
    write_tar(tmp_path / "x", (member("../escape"), b"evil"))
    with pytest.raises(ArchiveError, match="unsafe path"):
        archives.extract(tmp_path / "x", tmp_path / "out", lambda name: name == "other")


def test_total_size_is_limited(tmp_path):
    (tmp_path / "x").write_bytes(tar_bytes({"a": b"0" * 600, "b": b"0" * 600}))
    archives.extract(tmp_path / "x", tmp_path / "fits", everything, largest=1200)
    with pytest.raises(ArchiveError, match="x unpacks to more bytes than allowed"):
        archives.extract(tmp_path / "x", tmp_path / "out", everything, largest=1199)


@pytest.mark.parametrize("keep", [0, 5, 60, 200])
def test_truncated_tar_is_damaged(tmp_path, keep):
    (tmp_path / "x").write_bytes(tar_bytes({"a": bytes(range(256)) * 200})[:keep])
    with pytest.raises(ArchiveError, match="x is damaged"):
        archives.extract(tmp_path / "x", tmp_path / "out", everything)


def test_wrong_zip_content_is_damaged(tmp_path):
    content = bytearray(write_zip(tmp_path / "x", {"a": bytes(range(256)) * 20}).read_bytes())
    content[40] ^= 255
    (tmp_path / "x").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "x") as archive, pytest.raises(ArchiveError, match="a is damaged"):
        archives.read_zip_member(archive, archive.getinfo("a"), 10**6)


def test_gunzip_bomb_stops_at_the_limit(tmp_path):
    (tmp_path / "x.gz").write_bytes(gz(bytes(50 << 20)))
    with pytest.raises(ArchiveError, match=r"x\.gz unpacks to more bytes than allowed"):
        archives.gunzip(tmp_path / "x.gz", tmp_path / "x", 1000)
    assert (tmp_path / "x").stat().st_size <= 2 << 20


@pytest.mark.parametrize("content", [b"no gzip", gz(b"abc" * 1000)[:-6], gz(b"abc")[:-8] + b"12345678"])
def test_damaged_gzip(tmp_path, content):
    (tmp_path / "x.gz").write_bytes(content)
    with pytest.raises(ArchiveError, match=r"x\.gz is damaged"):
        archives.gunzip(tmp_path / "x.gz", tmp_path / "x", 10**6)
