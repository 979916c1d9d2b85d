"""The blocks of docs/add-a-dataset.md, run on a copy of the project up to each dataset's table and figure."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from snakemake.utils import update_config

from tests.project import ROOT

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DATASET = re.compile(r"--configfile (\w+)\.yaml")
WITHOUT_REPORT = r"results/tables/metrics.csv results/figures/data/\1.png --configfile \1.yaml"


def follow(text, root):
    """Execute the blocks in the folder `root`; yield each dataset whose workflow has run, up to its table."""
    for language, block in BLOCK.findall(text):
        if language == "bash":
            environment = {
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            }
            result = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", DATASET.sub(WITHOUT_REPORT, block)],
                cwd=root,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert result.returncode == 0, f"{block}\n{result.stdout}\n{result.stderr}"
            yield from DATASET.findall(block)
        else:
            path = root / block.splitlines()[0].removeprefix("# ")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block, encoding="utf-8")


@pytest.mark.slow
def test_the_page_works_as_written(project):
    # As a reader would: in a clone that has run; it has few calibrators.
    root = project.root
    done = []
    for dataset in follow((ROOT / "docs" / "add-a-dataset.md").read_text("utf-8"), root):
        done.append(dataset)
        with (root / "results" / "tables" / "metrics.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert {row["dataset"] for row in rows} == {dataset}
        assert {row["loss"] for row in rows} == {"ce", "focal-2"}
        accuracy = [
            float(row["value"])
            for row in rows
            if (row["metric"], row["method"], row["split"]) == ("accuracy", "none", "test")
        ]
        # Guessing among three classes of equal size gives one third.
        assert min(accuracy) > 0.45, (dataset, accuracy)
        assert (root / "results" / "figures" / "data" / f"{dataset}.png").stat().st_size > 1000
    assert done == ["shapes", "waves", "notes", "spirals"]
    together = {"runs": []}
    for dataset in done:
        own = yaml.safe_load((root / f"{dataset}.yaml").read_text("utf-8"))
        together["runs"] += own.pop("runs")
        update_config(together, own)
    (root / "together.yaml").write_text(yaml.safe_dump(together), encoding="utf-8")
    planned = project.planned("--configfile", "together.yaml")
    assert "train" not in planned
    assert planned["recommend"] == 2 * len(done)
    assert planned["report"] == 1
