"""Records of products: who writes them, what they hold, what readers refuse, faults of a whole folder."""

from workflow_scripts.entry import run

import hashlib
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from focalcal import __main__ as command
from focalcal.common import checksums
from focalcal.common.checksums import outdated, verify
from focalcal.common.csv_rows import read_rows, write_rows
from focalcal.common.errors import UserError
from focalcal.common.io import read_json, write_json, write_text
from focalcal.common.npz import read_npz

RESULTS = Path("results")
DATA, METRICS = RESULTS / "data" / "d.npz", RESULTS / "tables" / "metrics.csv"
WEIGHTS, LOGITS = (RESULTS / "runs" / "m" / "seed1" / name for name in ("weights", "logits"))
STEPS = {DATA: [], WEIGHTS: [DATA], LOGITS: [DATA, WEIGHTS], METRICS: [LOGITS]}
RUN_RECORD = RESULTS / "checksums" / "runs" / "m" / "seed1.json"
DATA_RECORD = RESULTS / "checksums" / "data" / "d.npz.json"
AGAIN = "start the same command again"


def make(path, text):
    with checksums.recording(f"make_{path.stem}"):
        for read in STEPS.get(path, ()):
            checksums.check(read)
        write_text(path, text)


@pytest.fixture(autouse=True)
def _finished(tmp_path, monkeypatch):
    """Work in a finished folder of four steps, two of which write to the folder of one run."""
    monkeypatch.chdir(tmp_path)
    for path in STEPS:
        make(path, path.name)


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_record_names_file_step_and_what_was_read():
    record = {"step": "make_d", "sha256": sha256("d.npz"), "read": {}}
    assert read_json(DATA_RECORD) == {"path": str(DATA), "files": {"d.npz": record}}
    assert checksums.read_record(METRICS) == (
        "make_metrics",
        sha256("metrics.csv"),
        {str(LOGITS): sha256("logits")},
    )


@pytest.mark.parametrize(
    "path", ["mine.txt", "logs/x.log", "results/benchmarks/x.tsv", "results/checkpoints/a/state"]
)
def test_other_files_have_no_record(path):
    before = set(Path().rglob("*.json"))
    with checksums.recording("one"):
        write_text(path, "abc")
    assert set(Path().rglob("*.json")) == before


def test_a_job_writes_records_that_name_its_entry_point_and_the_library_by_hand_writes_none():
    first, second = Path("results/first"), Path("results/second")

    def main(_argv):
        write_text(first, "abc")

    assert run(main) == 0
    assert checksums.read_record(first).step == Path(__file__).stem
    write_text(second, "by hand, afterwards")
    assert checksums.read_record(second) is None


def test_an_error_leaves_product_and_record_as_they_were():
    before = DATA_RECORD.read_bytes()

    def write_what_json_refuses():
        with checksums.recording("three"):
            write_json(DATA, float("nan"))

    with pytest.raises(ValueError, match="JSON compliant"):
        write_what_json_refuses()
    assert DATA_RECORD.read_bytes() == before
    checksums.check(DATA)


@pytest.mark.parametrize(
    ("name", "write", "read"),
    [
        ("table.csv", lambda path: write_rows(path, [{"a": 1, "b": 22}]), read_rows),
        ("record.json", lambda path: write_json(path, {"a": 11}), read_json),
        ("arrays.npz", lambda path: np.savez(path, a=np.arange(5)), read_npz),
    ],
)
def test_every_reader_refuses_what_differs_from_the_record(name, write, read):
    path = RESULTS / name
    write(path)
    read(path)
    record = {"step": "one", "sha256": "0", "read": {}}
    write_json(f"results/checksums/{name}.json", {"path": str(path), "files": {name: record}})
    with pytest.raises(
        UserError, match=rf"^results/{name} is not what `one` wrote \(checksum\); delete it and {AGAIN}$"
    ):
        read(path)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "1", '{"path": "x"}', '{"path": "x", "files": {"logits": 2}}']
)
def test_a_damaged_record_is_named_with_what_it_is_about(content):
    RUN_RECORD.write_text(content)
    message = f"{RUN_RECORD} is damaged; delete it and results/runs/m/seed1, and {AGAIN}"
    for attempt in (lambda: checksums.check(LOGITS), lambda: make(WEIGHTS, "new")):
        with pytest.raises(UserError) as caught:
            attempt()
        assert str(caught.value) == message


def test_the_folder_and_record_of_another_run_are_refused():
    for folder in (RUN_RECORD.parent, LOGITS.parents[1]):
        folder.rename(folder.with_name("other"))
    with pytest.raises(UserError) as caught:
        checksums.check("results/runs/other/seed1/logits")
    assert str(caught.value) == (
        "results/checksums/runs/other/seed1.json is the record of results/runs/m/seed1, not of "
        f"results/runs/other/seed1; delete it and results/runs/other/seed1, and {AGAIN}"
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


def test_a_finished_folder_has_no_fault(capsys):
    (RESULTS / "README.md").touch()
    (RESULTS / "benchmarks").mkdir()
    (RESULTS / "benchmarks" / "train.tsv").touch()
    (RESULTS / ".logits.host-1-x.partial").touch()
    assert outdated([METRICS]) == []
    assert command.main(["verify"]) == 0
    assert capsys.readouterr().out == (
        "All 4 products of results are what their steps wrote, from the products that are here.\n"
    )


def test_the_chain_is_walked_to_its_beginning_without_reading_products():
    make(DATA, "others")
    for path in (WEIGHTS, LOGITS):
        path.unlink()
    assert outdated([METRICS]) == [
        f"{path} was made from another {DATA} (checksum); delete it and {AGAIN}" for path in (LOGITS, WEIGHTS)
    ]
    shutil.rmtree(RESULTS / "checksums")
    assert outdated([METRICS]) == [], "what has no record ends the chain"


def test_every_fault_is_named_with_its_repair(capsys):
    DATA.write_text("dat")
    WEIGHTS.unlink()
    (RESULTS / "foreign").touch()
    record = RESULTS / "checksums" / "tables" / "metrics.csv.json"
    record.write_text("{")
    assert verify(RESULTS) == (
        4,
        [
            f"{record} is damaged; delete it and {METRICS}, and {AGAIN}",
            f"{DATA} is not what `make_d` wrote (checksum); delete it and {AGAIN}",
            f"results/foreign has no record of the step that wrote it; delete it and {AGAIN}",
            f"{WEIGHTS} is missing; `snakemake --cores all` with its name makes it again",
        ],
    )
    assert command.main(["verify", "results"]) == 2
    output = capsys.readouterr()
    assert len(output.out.splitlines()) == 4
    assert output.err == "error: results has 4 faults among 4 products; repairs are above\n"


def test_a_folder_without_products_is_refused(capsys, tmp_path):
    assert command.main(["verify", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.endswith("has no products; make them first: snakemake --cores all\n")


class TestFaultsBehind:
    """What a product and all behind it lack; no file is asked for but by its record."""

    def test_a_sound_chain_has_none(self):
        assert checksums.faults_behind([METRICS], 10) == (4, 4, [])

    def test_missing_damaged_and_outdated_files_are_named(self):
        DATA.unlink()
        WEIGHTS.write_text("other")
        count, read, faults = checksums.faults_behind([METRICS], 10)
        assert (count, read) == (4, 3)
        assert faults == [
            f"{DATA} is missing; `snakemake --cores all` with its name makes it again",
            f"{WEIGHTS} is not what `make_weights` wrote (checksum); delete it and {AGAIN}",
        ]
        make(DATA, "new")
        (fault, again) = checksums.faults_behind([LOGITS], 10)[2][1:]
        assert fault.startswith(f"{LOGITS} was made from another {DATA} (checksum)")
        assert again.startswith(f"{WEIGHTS} was made from another {DATA} (checksum)")

    def test_without_time_nothing_is_read_but_every_file_is_looked_for(self):
        WEIGHTS.unlink()
        assert checksums.faults_behind([METRICS], -1) == (
            4,
            0,
            [f"{WEIGHTS} is missing; `snakemake --cores all` with its name makes it again"],
        )

    def test_what_was_changed_after_its_record_is_read_first(self):
        for path in (WEIGHTS, LOGITS, METRICS):
            os.utime(path, ns=(0, 0))
        os.utime(DATA, ns=(0, DATA_RECORD.stat().st_mtime_ns + 1))
        DATA.write_text("much longer than the other files")
        assert min(STEPS, key=checksums._urgency) == DATA

    def test_a_product_without_its_record_is_named(self):
        DATA_RECORD.unlink()
        fault = f"{DATA} has no record of the step that wrote it; delete it and {AGAIN}"
        assert checksums.faults_behind([METRICS], 10) == (4, 3, [fault])
        DATA.unlink()
        fault = f"{DATA} is missing; `snakemake --cores all` with its name makes it again"
        assert checksums.faults_behind([METRICS], 10) == (4, 3, [fault])

    def test_a_product_that_was_never_made_is_no_fault(self):
        assert checksums.faults_behind([METRICS, RESULTS / "tables" / "other.csv"], 10) == (4, 4, [])

    def test_a_damaged_record_is_the_fault(self):
        RUN_RECORD.write_text("{")
        assert checksums.faults_behind([METRICS], 10)[2] == [
            f"{RUN_RECORD} is damaged; delete it and results/runs/m/seed1, and {AGAIN}"
        ]


@pytest.mark.parametrize("kind", ["folder", "pipe", "broken link"])
def test_something_else_in_place_of_a_file_is_named_by_readers_and_by_verify(kind):
    WEIGHTS.unlink()
    if kind == "folder":
        WEIGHTS.mkdir()
    elif kind == "pipe":
        os.mkfifo(WEIGHTS)
    else:
        WEIGHTS.symlink_to("nowhere")
    with pytest.raises(
        UserError, match=rf"{WEIGHTS} cannot be read .*but `make_weights` wrote a file; delete"
    ):
        checksums.check(WEIGHTS)
    assert any(str(WEIGHTS) in fault for fault in verify(RESULTS)[1])


def test_a_folder_in_place_of_a_file_without_record_is_refused():
    folder = RESULTS / "folder.json"
    folder.mkdir()
    with pytest.raises(UserError, match=r"folder\.json is damaged \(Is a directory\); delete it"):
        read_json(folder)
