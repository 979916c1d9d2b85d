"""The blocks of docs/add-a-dataset.md, run on a copy: figures, and networks trained on each."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from snakemake.utils import update_config

from tests.project import ROOT

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DATASET = re.compile(r"--configfile (\w+)\.yaml")
FIGURE, LOGITS = "results/figures/data/{}.png", "results/runs/{}/{}/ce/seed1/logits.npz"
MODELS = {"shapes": "cnn-small", "waves": "mlp", "notes": "gp-cnn", "spirals": "mlp"}


def shortened(block):
    """Return a block whose workflow ends with the figure and the logits of one network."""
    for dataset in DATASET.findall(block):
        targets = f"{FIGURE.format(dataset)} {LOGITS.format(dataset, MODELS[dataset])}"
        block = block.replace("--configfile", f"{targets} --configfile")
    return block


def follow(text, root):
    """Execute the blocks in the folder `root`; yield each dataset whose workflow has run."""
    for language, block in BLOCK.findall(text):
        if language == "bash":
            environment = {
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            }
            result = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", shortened(block)],
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
    # As a reader would: in a clone that has run.
    root = project.root
    done = []
    for dataset in follow((ROOT / "docs" / "add-a-dataset.md").read_text("utf-8"), root):
        done.append(dataset)
        with np.load(root / LOGITS.format(dataset, MODELS[dataset])) as arrays:
            correct = arrays["test_logits"].argmax(axis=1) == arrays["test_labels"]
        # Guessing among three classes of equal size gives one third.
        assert correct.mean() > 0.45, dataset
        assert (root / FIGURE.format(dataset)).stat().st_size > 1000
    assert done == list(MODELS)
    together = {"runs": []}
    for dataset in done:
        own = yaml.safe_load((root / f"{dataset}.yaml").read_text("utf-8"))
        together["runs"] += own.pop("runs")
        update_config(together, own)
    (root / "together.yaml").write_text(yaml.safe_dump(together), encoding="utf-8")
    planned = project.planned("--configfile", "together.yaml")
    assert planned["train"] == len(done)  # those with focal-2
    assert planned["recommend"] == 2 * len(done)
    assert planned["report"] == 1
