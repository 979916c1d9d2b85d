import gzip
import json

import pandas as pd
import pytest
from PIL import Image

from focalcal.common.errors import UserError
from tests.unit.reporting.made_results import MadeResults
from tools import snapshot

BLOCK = {
    "datasets": ["gauss-3"],
    "models": ["mlp"],
    "losses": ["ce", "focal-2"],
    "seeds": [1, 2],
    "recipe": "quickstart",
}
DATASET_MODEL = "gauss-3/mlp"


@pytest.fixture
def results(tmp_path):
    """Return a results folder with records of made-up runs, and a line or a square for tables and figures."""
    made = MadeResults(tmp_path, [BLOCK])
    made.write_runs()
    (made.results / "config.json").write_text(json.dumps(made.config))
    names = [product.name for product in made.layout.products("table", stage="reporting")]
    for name in (*names, "claims"):
        (made.results / "tables" / f"{name}.csv").write_text(f"{name}\n")
        (made.results / "tables" / f"{name}.md").write_text(f"{name}\n")
    (made.results / "tables" / "claims.csv").write_text("id,verdict\n")
    figures = (*snapshot.FIGURES, *(f"{name}/{DATASET_MODEL}" for name in snapshot.DATASET_MODEL_FIGURES))
    for name in figures:
        path = made.results / "figures" / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.effect_noise((64, 64), 80).convert("RGB").save(path)
    return made.results


def test_a_snapshot_has_what_pages_read(results, tmp_path):
    target = tmp_path / "docs" / "taken"
    snapshot.write_snapshot(results, target)
    for name in ("config.json", "tables/overview.csv", "tables/claims.csv"):
        assert (target / name).read_bytes() == (results / name).read_bytes()
    assert (
        gzip.decompress((target / "tables/metrics.csv.gz").read_bytes())
        == (results / "tables/metrics.csv").read_bytes()
    )
    assert not list(target.rglob("*.md"))
    assert [path.name for path in target.parent.iterdir()] == ["taken"]


def test_a_large_study_leaves_out_what_is_about_single_runs(results, tmp_path):
    snapshot.write_snapshot(results, tmp_path / "taken", runs=False)
    kept = {path.relative_to(tmp_path / "taken").as_posix() for path in (tmp_path / "taken").rglob("*.*")}
    assert {"config.json", "costs.csv", "tables/claims.csv", "tables/arena.csv"} <= kept
    assert not [name for name in kept if name.startswith("runs") or "/mlp" in name or "metrics" in name]


def test_a_large_study_keeps_the_log_loss_of_its_runs(results, tmp_path):
    snapshot.write_snapshot(results, tmp_path / "taken", runs=False)
    kept = pd.read_csv(tmp_path / "taken" / snapshot.LOG_LOSS)
    metrics = pd.read_csv(results / "tables" / "metrics.csv", keep_default_na=False)
    rows = metrics[(metrics["split"] == "test") & (metrics["metric"] == "nll")]
    rows = rows[(rows["criterion"] == "nll") | (rows["method"] == "none")]
    assert len(kept) == len(rows) > 0
    assert kept["nll"].tolist() == pytest.approx(rows["value"].tolist(), rel=1e-5)
    assert list(kept["method"]) == list(rows["method"])


def test_a_row_names_the_code_but_not_the_machine(results, tmp_path):
    path = results / f"runs/{DATASET_MODEL}/ce/seed1/run.json"
    record = json.loads(path.read_text())
    record["provenance"]["platform"] = "a machine's name"
    record["provenance"]["code"]["focalcal/other.py"] = "edited"
    path.write_text(json.dumps(record))
    snapshot.write_snapshot(results, tmp_path / "taken")
    text = (tmp_path / "taken" / "runs.csv").read_text()
    rows = pd.read_csv(tmp_path / "taken" / "runs.csv")
    assert rows["loss"].tolist() == ["ce", "ce", "focal-2", "focal-2"]
    assert rows["status"].tolist() == ["ok"] * 4
    assert rows["code"].nunique() == 2
    assert "a machine's name" not in text


def test_nothing_is_overwritten(results, tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(UserError, match="taken exists; remove it"):
        snapshot.write_snapshot(results, tmp_path / "taken")


def test_an_unfinished_folder_is_refused_and_leaves_nothing(results, tmp_path):
    (results / "tables" / "overview.csv").unlink()
    with pytest.raises(UserError, match=r"overview\.csv is missing; finish the workflow first"):
        snapshot.write_snapshot(results, tmp_path / "docs" / "taken")
    assert list((tmp_path / "docs").iterdir()) == []
