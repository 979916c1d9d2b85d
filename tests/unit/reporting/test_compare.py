import json
import shutil

import pandas as pd
import pytest

from focalcal.common.errors import UserError
from focalcal.reporting import compare
from tests.unit.reporting.made_results import MadeResults

BLOCKS = [
    {
        "datasets": ["gauss-3"],
        "models": ["mlp"],
        "losses": ["ce", "focal-2"],
        "seeds": [1, 2],
        "recipe": "quickstart",
    }
]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    made = MadeResults(tmp_path_factory.mktemp("made"), BLOCKS)
    made.write_runs()
    (made.results / "config.json").write_text(json.dumps(made.config))
    return made.results


@pytest.fixture
def changed(original, tmp_path):
    return shutil.copytree(original, tmp_path / "changed")


def section(text, heading):
    return text.split(f"## {heading}\n")[1].split("\n## ")[0]


def test_a_copy_is_the_same(original, changed):
    text = compare.compare_folders(original, changed)
    for heading in ("Configuration", "Code", "Runs", "Claims"):
        assert section(text, heading).strip() == "The same."
    assert "The same to the last digit" in section(text, "Numbers")


def test_a_changed_key_is_named(original, changed):
    config = json.loads((changed / "config.json").read_text())
    config["calibration"]["bins"] = 10
    config["runs"][0]["seeds"] = [1, 2, 3]
    (changed / "config.json").write_text(json.dumps(config))
    lines = section(compare.compare_folders(original, changed), "Configuration")
    assert "- `calibration.bins`: 15 → 10" in lines
    assert "- `runs[0].seeds`: [1, 2] → [1, 2, 3]" in lines
    assert lines.count("- `") == 2


def test_changed_code_runs_and_numbers(original, changed):
    record = changed / "runs/gauss-3/mlp/ce/seed1/run.json"
    record.write_text(record.read_text().replace("0123", "4567"))
    runs = changed / "tables/runs.csv"
    runs.write_text(runs.read_text().replace("ce,2,3,ok", "ce,2,3,diverged"))
    metrics = pd.read_csv(changed / "tables/metrics.csv")
    chosen = (metrics["metric"] == "ece") & (metrics["method"] == "ts") & (metrics["split"] == "test")
    metrics.loc[chosen, "value"] /= 2
    metrics.to_csv(changed / "tables/metrics.csv", index=False)
    text = compare.compare_folders(original, changed)
    assert "- `a.py`: 0123 → 0123, 4567" in section(text, "Code")
    assert "- `gauss-3/mlp/ce/seed2`: ok → diverged" in section(text, "Runs")
    numbers = section(text, "Numbers")
    assert "| ECE (%) | TS | 4 |" in numbers
    assert "| 4 / 0 / 0 | too few runs |" in numbers
    assert "gauss-3/mlp/" in numbers.split("changed most")[1]


def test_changed_verdicts(original, changed):
    for folder, verdict in ((original, "not run"), (changed, "reproduced")):
        (folder / "tables/claims.csv").write_text(f"id,verdict\nk24-x,{verdict}\n")
    text = compare.compare_folders(original, changed)
    (original / "tables/claims.csv").unlink()
    assert "- `k24-x`: not run → reproduced" in section(text, "Claims")


def test_folders_without_common_runs(original, changed):
    metrics = changed / "tables/metrics.csv"
    metrics.write_text(metrics.read_text().replace("gauss-3", "other"))
    assert "No score of any run is in both folders." in compare.compare_folders(original, changed)


def test_a_folder_without_configuration_says_so(original, changed):
    (changed / "config.json").unlink()
    assert "Unknown" in section(compare.compare_folders(original, changed), "Configuration")


def test_what_is_no_results_folder_is_refused(original, tmp_path):
    with pytest.raises(UserError, match=r"has no tables/metrics\.csv; give two results folders"):
        compare.compare_folders(original, tmp_path)
