"""The scripts of docs/examples run as they are, show an improvement, and stay short."""

import os
import re
import subprocess
import sys

from tests.project import ROOT

FOLDER = ROOT / "docs" / "examples"


def printed(script, folder):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
    command = [sys.executable, str(FOLDER / script)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers(text, row):
    line = next(line for line in text.splitlines() if line.startswith(row))
    return [float(number) for number in re.findall(r"\d+\.\d+", line.removeprefix(row))]


def test_a_scikit_learn_model_gets_a_lower_log_loss(tmp_path):
    text = printed("calibrate_sklearn_model.py", tmp_path)
    before, *after = (numbers(text, name) for name in ("as trained", "ts", "fts", "svs"))
    assert all(scores[0] < 0.5 * before[0] for scores in after)
    assert "same after loading: True" in text


def test_a_torch_network_gets_a_lower_log_loss_and_ece(tmp_path):
    text = printed("calibrate_torch_logits.py", tmp_path)
    before, after = numbers(text, "as trained"), numbers(text, "calibrated")
    assert after[0] < before[0]
    assert after[1] < before[1]
    assert (tmp_path / "calibrator.json").is_file()


def test_an_own_loss_has_its_row_beside_the_others(tmp_path):
    text = printed("compare_your_loss.py", tmp_path)
    rows = {line.split()[0]: numbers(text, line.split()[0]) for line in text.splitlines()[1:]}
    assert list(rows) == ["bounded", "ce", "focal-3", "flsd-53", "ls-0.05"]
    assert all(len(scores) == 3 for scores in rows.values())
    assert rows["focal-3"][1] < rows["focal-3"][0]
