"""Records of products: who writes them, what they hold, and what a reader refuses."""

from workflow_scripts.entry import run

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from focalcal.common import checksums
from focalcal.common.csv_rows import read_rows, write_rows
from focalcal.common.errors import UserError
from focalcal.common.io import read_json, write_json, write_text
from focalcal.common.npz import read_npz

FIRST, SECOND = Path("results/runs/a/first.txt"), Path("results/runs/a/second.json")
RECORD = Path("results/checksums/runs/a/first.txt.json")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    """Work in an empty folder, as a job does."""
    monkeypatch.chdir(tmp_path)


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def write_two():
    with checksums.recording("one"):
        write_text(FIRST, "abc")
    with checksums.recording("two"):
        checksums.check(FIRST)
        write_json(SECOND, 1)


def test_a_record_names_file_step_and_what_was_read():
    write_two()
    assert json.loads(RECORD.read_text("utf-8")) == {
        "path": str(FIRST),
        "step": "one",
        "sha256": sha256(b"abc"),
        "read": {},
    }
    record = checksums.read_record(SECOND)
    assert record == ("two", sha256(b"1\n"), {str(FIRST): sha256(b"abc")})


def test_an_absolute_path_has_the_same_record():
    write_two()
    assert checksums.read_record(FIRST.absolute()) == checksums.read_record(FIRST)
    with checksums.recording("three"):
        checksums.check(FIRST.absolute())
        write_text(Path("results/third").absolute(), "")
    assert checksums.read_record("results/third").read == {str(FIRST): sha256(b"abc")}


def test_the_results_of_another_folder_are_checked(monkeypatch, tmp_path):
    write_two()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    checksums.check(tmp_path / FIRST)
    (tmp_path / FIRST).write_text("abd")
    with pytest.raises(UserError, match="is not what `one` wrote"):
        checksums.check(tmp_path / FIRST)


def test_a_prefix_before_the_results_keeps_its_own_records():
    with checksums.recording("one"):
        write_text("part/results/x.txt", "abc")
    assert Path("part/results/checksums/x.txt.json").is_file()
    assert checksums.read_record("part/results/x.txt").sha256 == sha256(b"abc")


@pytest.mark.parametrize(
    "path", ["mine.txt", "logs/x.log", "results", "results/benchmarks/x.tsv", "results/checkpoints/a/state"]
)
def test_other_files_have_no_record(path):
    with checksums.recording("one"):
        write_text(path, "abc")
    assert not list(Path().rglob("*.json"))


def test_the_library_by_hand_writes_no_record():
    write_text(FIRST, "abc")
    assert not Path("results/checksums").exists()
    assert checksums.read_record(FIRST) is None


def test_a_job_writes_records_that_name_its_entry_point():
    def main(_argv):
        write_text(FIRST, "abc")

    assert run(main) == 0
    assert checksums.read_record(FIRST).step == Path(__file__).stem
    write_text(SECOND, "by hand, afterwards")
    assert checksums.read_record(SECOND) is None


def test_a_job_within_a_job_knows_only_what_it_read_itself():
    write_two()
    with checksums.recording("batch"):
        checksums.check(FIRST)
        with checksums.recording("one"):
            write_text("results/inner", "")
        write_text("results/outer", "")
    assert checksums.read_record("results/inner").read == {}
    assert checksums.read_record("results/outer").read == {str(FIRST): sha256(b"abc")}


def test_an_error_leaves_product_and_record_as_they_were():
    write_two()
    before = RECORD.read_bytes()

    def main(_argv):
        raise UserError("no")

    def write_what_json_refuses():
        write_json(FIRST, float("nan"))

    assert run(main) == 2
    with checksums.recording("three"), pytest.raises(ValueError, match="JSON compliant"):
        write_what_json_refuses()
    assert RECORD.read_bytes() == before
    checksums.check(FIRST)


def test_what_was_written_again_is_read_again():
    for text in ("abc", "abd", "abe"):
        with checksums.recording("one"):
            write_text(FIRST, text)
            checksums.check(FIRST)


def test_a_file_that_does_not_exist_is_left_to_its_reader():
    write_two()
    FIRST.unlink()
    checksums.check(FIRST)


def flipped(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


READERS = {
    "table.csv": (lambda path: write_rows(path, [{"a": 1, "b": 22}]), read_rows),
    "record.json": (lambda path: write_json(path, {"a": 11}), read_json),
}


@pytest.mark.parametrize("damage", [flipped, lambda content: content[:-3], lambda _: b""])
@pytest.mark.parametrize("name", READERS)
def test_a_reader_refuses_what_differs_from_the_record(name, damage):
    write, read = READERS[name]
    path = Path("results", name)
    with checksums.recording("one"):
        write(path)
    before = read(path)
    good = path.read_bytes()
    path.write_bytes(damage(good))
    with pytest.raises(
        UserError,
        match=rf"^results/{name} is not what `one` wrote \(checksum\); delete it and start the same command",
    ):
        read(path)
    path.unlink()
    with checksums.recording("one"):
        write(path)
    assert read(path) == before


def test_arrays_are_refused_too():
    path = Path("results/runs/a/logits.npz")
    path.parent.mkdir(parents=True)
    np.savez(path, a=np.arange(5))
    assert read_npz(path)["a"].tolist() == [0, 1, 2, 3, 4]
    record = {"path": str(path), "step": "calibrate", "sha256": "0", "read": {}}
    write_json("results/checksums/runs/a/logits.npz.json", record)
    with pytest.raises(UserError, match=r"logits\.npz is not what `calibrate` wrote"):
        read_npz(path)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "1", '{"path": "x"}', '{"path": 1, "step": 1, "read": 2}']
)
def test_a_damaged_record_is_named_with_its_product(content):
    write_two()
    RECORD.write_text(content)
    with pytest.raises(UserError) as caught:
        checksums.check(FIRST)
    assert (
        str(caught.value) == f"{RECORD} is damaged; delete it and {FIRST}, and start the same command again"
    )


def test_file_and_record_of_another_run_are_refused():
    for name in "ab":
        with checksums.recording("train"):
            write_text(f"results/runs/{name}/weights", name)
    for folder in ("results/runs", "results/checksums/runs"):
        Path(folder, "a").rename(f"{folder}/c")
        Path(folder, "b").rename(f"{folder}/a")
        Path(folder, "c").rename(f"{folder}/b")
    with pytest.raises(UserError) as caught:
        checksums.check("results/runs/a/weights")
    assert str(caught.value) == (
        "results/checksums/runs/a/weights.json is the record of results/runs/b/weights, not of "
        "results/runs/a/weights; delete both files and start the same command again"
    )


def test_empty_and_cut_tables_are_refused_without_a_record():
    path = Path("table.csv")
    for content, reason in [
        ("", "it has no header"),
        ("a,b\n1,2\n3\n", "row 2 does not have 2 cells"),
        ("a,b\n1,2,3\n", "row 1 does not have 2 cells"),
    ]:
        path.write_text(content)
        with pytest.raises(UserError, match=rf"^table.csv is damaged \({reason}\); delete it and start"):
            read_rows(path)
