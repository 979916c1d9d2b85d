"""A product that is empty, cut or garbled is refused by its name, with the repair."""

import json

import numpy as np
import pytest

from focalcal.common.errors import UserError
from focalcal.common.io import read_json
from focalcal.reporting.records.sources import Sources
from tests.unit.reporting.made_sources import HEADER, SETTINGS

PATH = "gauss-3/mlp/ce/seed1"
RUN = {"dataset": "gauss-3", "model": "mlp", "loss": "ce", "seed": "1", "path": PATH, "status": "ok"}
REPAIR = "is damaged .*delete it and start the same command again"


def flip_first(content):
    return bytes([content[0] ^ 0xFF]) + content[1:]


@pytest.fixture
def sources(tmp_path):
    """Sources of one trained run, with its files."""
    run, calibration = tmp_path / "runs" / PATH, tmp_path / "calibration" / PATH
    for folder in (run, calibration, tmp_path / "tables"):
        folder.mkdir(parents=True)
    (run / "run.json").write_text(json.dumps({"status": "ok"}))
    (run / "history.csv").write_text("epoch,train_loss\n1,0.5\n")
    np.savez(calibration / "surfaces.npz", nll=np.ones((3, 4)))
    (tmp_path / "tables" / "metrics.csv").write_text(f"{HEADER}\n")
    return Sources(tmp_path, SETTINGS, cache={"runs": [RUN]})


READERS = {
    "runs/gauss-3/mlp/ce/seed1/run.json": lambda made: list(made.records()),
    "runs/gauss-3/mlp/ce/seed1/history.csv": lambda made: list(made.histories()),
    "calibration/gauss-3/mlp/ce/seed1/surfaces.npz": lambda made: list(made.surfaces()),
    "tables/metrics.csv": lambda made: made.metrics,
}


@pytest.mark.parametrize("name", READERS)
def test_an_empty_file_is_refused_by_name(sources, name):
    READERS[name](sources)
    sources.cache.pop("metrics", None)
    (sources.results / name).write_bytes(b"")
    with pytest.raises(UserError, match=f"{name} {REPAIR}"):
        READERS[name](sources)


@pytest.mark.parametrize("damage", [lambda content: content[: len(content) // 2], flip_first])
def test_damaged_surfaces_are_refused_by_name(sources, damage):
    path = sources.results / "calibration" / PATH / "surfaces.npz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UserError, match=f"surfaces.npz {REPAIR}"):
        list(sources.surfaces())


@pytest.mark.parametrize("content", [b"", b'{"a": ', b"\xff\xfe", b"[1, 2"])
def test_json_that_cannot_be_read_is_refused_by_name(tmp_path, content):
    (tmp_path / "fits.json").write_bytes(content)
    with pytest.raises(UserError, match=f"fits.json {REPAIR}") as caught:
        read_json(tmp_path / "fits.json")
    assert "\n" not in str(caught.value)
