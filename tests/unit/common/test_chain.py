"""The chain of checksums: what was made from another version, and the faults of a whole folder."""

from workflow_scripts.entry import run

import json
import shutil
from pathlib import Path

import pytest

from focalcal.common import checksums
from focalcal.common.chain import outdated, verify
from focalcal.common.io import write_text
from workflow_scripts import verify as entry_point

RESULTS = Path("results")
DATA, WEIGHTS, LOGITS, METRICS = (RESULTS / name for name in ("data", "weights", "logits", "metrics"))
STEPS = {DATA: [], WEIGHTS: [DATA], LOGITS: [DATA, WEIGHTS], METRICS: [LOGITS]}


def make(path, text, reads):
    with checksums.recording(f"make_{path.name}"):
        for read in reads:
            checksums.check(read)
        write_text(path, text)


@pytest.fixture(autouse=True)
def _finished(tmp_path, monkeypatch):
    """A finished folder of four steps."""
    monkeypatch.chdir(tmp_path)
    for path, reads in STEPS.items():
        make(path, path.name, reads)


def test_a_finished_folder_has_no_fault(capsys):
    (RESULTS / "README.md").touch()
    (RESULTS / "benchmarks").mkdir()
    (RESULTS / "benchmarks" / "train.tsv").touch()
    (RESULTS / ".logits.host-1-x.partial").touch()
    assert outdated([METRICS]) == []
    assert verify(RESULTS) == (4, [])
    assert run(entry_point.main, ["--results", "results"]) == 0
    assert capsys.readouterr().out == (
        "All 4 products of results are what their steps wrote, from the products that are here.\n"
    )


def test_the_chain_is_walked_to_its_beginning_without_reading_products():
    make(DATA, "others", [])
    for path in (WEIGHTS, LOGITS):
        path.unlink()
    repair = "delete it and start the same command again"
    assert outdated([METRICS]) == [
        f"results/logits was made from another results/data (checksum); {repair}",
        f"results/weights was made from another results/data (checksum); {repair}",
    ]


def test_an_input_made_again_with_the_same_content_is_no_fault():
    make(DATA, "data", [])
    assert verify(RESULTS).faults == []


def test_what_has_no_record_ends_the_chain():
    shutil.rmtree(RESULTS / "checksums")
    assert outdated([METRICS]) == []


def test_every_fault_is_named_with_its_repair(capsys):
    DATA.write_text("dat")
    WEIGHTS.unlink()
    (RESULTS / "foreign").touch()
    (RESULTS / "checksums" / "metrics.json").write_text("{")
    again = "start the same command again"
    assert verify(RESULTS) == (
        4,
        [
            f"results/data is not what `make_data` wrote (checksum); delete it and {again}",
            f"results/foreign has no record of the step that wrote it; delete it and {again}",
            f"results/checksums/metrics.json is damaged; delete it and results/metrics, and {again}",
            "results/weights is missing; start the command that made it again",
        ],
    )
    assert run(entry_point.main, ["--results", "results"]) == 2
    output = capsys.readouterr()
    assert len(output.out.splitlines()) == 4
    assert output.err == "error: results has 4 faults among 4 products; repairs are above\n"


def test_an_outdated_product_is_a_fault():
    make(LOGITS, "others", [DATA, WEIGHTS])
    (fault,) = verify(RESULTS).faults
    assert fault.startswith("results/metrics was made from another results/logits (checksum); delete it and ")


def test_an_edited_record_is_a_fault():
    file = RESULTS / "checksums" / "data.json"
    record = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps({**record, "sha256": "0" * 64}))
    assert len(verify(RESULTS).faults) == 3


def test_a_folder_without_products_is_refused(capsys, tmp_path):
    assert run(entry_point.main, ["--results", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.endswith("has no products; make them first: snakemake --cores all\n")
