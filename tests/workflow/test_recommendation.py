"""From a file of logits to a saved calibrator: the command of docs/recommend.md."""

import re
import subprocess
import sys

import numpy as np

from focalcal.calibration import saved
from tests.project import ROOT
from tests.unit.calibration.logit_sets import noisy


def test_one_file_and_nothing_else_gets_its_calibrator(fresh_project):
    (val, val_labels), (test, test_labels) = noisy(300, 3, 4.0, 1), noisy(300, 3, 4.0, 2)
    arrays = {"val_logits": val, "val_labels": val_labels, "test_logits": test, "test_labels": test_labels}
    np.savez(fresh_project.root / "my_logits.npz", **arrays)
    page = (ROOT / "docs" / "recommend.md").read_text("utf-8")
    command = next(text for text in re.findall(r"```bash\n(.*?)```", page, re.DOTALL) if "snakemake" in text)
    result = subprocess.run(
        ["bash", "-c", command.replace("snakemake", f"{sys.executable} -m snakemake")],
        cwd=fresh_project.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    found = sorted((fresh_project.root / "results").glob("recommended/**/*.json"))
    assert [path.relative_to(fresh_project.root).as_posix() for path in found] == [
        "results/recommended/mine/net/ce/seed1.json"
    ]
    probabilities = saved.load(found[0]).predict_proba(test)
    assert probabilities.shape == (300, 3)
    assert not (fresh_project.root / "results" / "tables").exists()
