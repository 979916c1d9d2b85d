import hashlib
import json

import pytest

from focalcal.common import checksums
from focalcal.common.io import write_json, write_text
from tools import crate


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A finished results folder of one run."""
    monkeypatch.chdir(tmp_path)
    results = tmp_path / "results"
    with checksums.recording("report"):
        write_text(results / "report.html", "<html>")
        write_json(results / "config.json", {"report": {"title": "Mine"}})
    with checksums.recording("train"):
        write_text(results / "runs/d/m/ce/seed1/history.csv", "epoch\n")
    return results


def test_a_crate_names_every_product_with_its_step_and_checksum(results):
    crate.main(results)
    content = json.loads((results / crate.METADATA).read_text("utf-8"))
    entities = {entity["@id"]: entity for entity in content["@graph"]}
    assert entities["./"]["name"] == "Mine"
    parts = [part["@id"] for part in entities["./"]["hasPart"]]
    assert parts == ["config.json", "report.html", "runs/d/m/ce/seed1/history.csv"]
    history = entities[parts[-1]]
    assert history["description"] == "Written by train"
    assert history["sha256"] == hashlib.sha256(b"epoch\n").hexdigest()
    assert checksums.verify(results) == (4, []), "the crate has a record of its own"
    references = {value["@id"] for entity in entities.values() for value in _objects(entity)}
    assert {name for name in references if not name.startswith("https:")} <= entities.keys()


def _objects(entity):
    values = (value if isinstance(value, list) else [value] for value in entity.values())
    return [value for found in values for value in found if isinstance(value, dict)]
