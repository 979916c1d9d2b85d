"""What Snakemake prints, on a terminal and elsewhere, and which jobs a configuration of own logits plans."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import numpy as np

WAITING_FAILURE = """for _ in range(1200):
        if Path("seen").exists():
            break
        time.sleep(0.05)
    raise ValueError("made to fail")
    measured = """
"""A job fails like this once the file exists, or after a minute."""


def on_a_terminal(command, folder, awaited):
    """Return exit code and output of a command on a terminal 100 wide; touch `seen` when a text shows."""
    outside, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=inside, stdout=inside, stderr=inside
    ) as process:
        os.close(inside)
        shown = b""
        # Linux reports the end of a terminal as an error.
        with contextlib.suppress(OSError):
            while part := os.read(outside, 65536):
                shown += part
                if awaited in shown:
                    (folder / "seen").touch()
    os.close(outside)
    return process.returncode, shown.decode("utf-8")


def test_a_finished_workflow_still_says_where_the_report_is(project):
    assert project.snakemake().splitlines()[-1] == f"The report: {project.root / 'results/report.html'}"
    assert "The report" not in project.snakemake("train_all")
    assert "The report" not in project.snakemake("-n")


def test_another_title_is_announced_before_the_report_is_replaced(project):
    (project.root / "mine.yaml").write_text("plan: {images_per_second: {default: 5}}\n", encoding="utf-8")
    output = project.snakemake("--configfile", "mine.yaml")
    announced = 'about "Focal loss and calibration"; the report of "mine" replaces them; to keep both'
    assert announced in output
    assert output.index(announced) < output.index("The report: ")
    assert "<title>mine</title>" in (project.root / "results" / "report.html").read_text("utf-8")


def test_a_terminal_shows_running_jobs_and_a_failure_ends_with_cause_and_log(project):
    project.edit("workflow_scripts/claims.py", "from pathlib", "import time\nfrom pathlib")
    project.edit("workflow_scripts/claims.py", "measured = ", WAITING_FAILURE)
    (project.root / "results/tables/claims.csv").unlink()
    command = [sys.executable, "-m", "snakemake", "--cores", "1"]
    code, output = on_a_terminal(command, project.root, b"0 of 3 jobs done, 1 running")
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", output).replace("\r", "\n").splitlines()
    assert code == 1
    assert any(re.search(r"━ +0 of 3 jobs done, 1 running", line) for line in lines)
    assert "  claims" in lines
    assert [line for line in lines if line][-3:-1] == [
        "  claims: logs/claims.log",
        "    ValueError: made to fail",
    ]
    assert max(map(len, lines)) < 300


def test_own_logits_alone_plan_neither_theory_nor_claims(fresh_project):
    rng = np.random.default_rng(1)
    arrays = {f"{split}_logits": rng.normal(size=(60, 3)) for split in ("val", "test")}
    labels = {f"{split}_labels": np.arange(60) % 3 for split in ("val", "test")}
    np.savez(fresh_project.root / "my.npz", **arrays, **labels)
    entry = {"path": "my.npz", "dataset": "d", "model": "m", "loss": "ce", "seed": 1}
    fresh_project.configure(lambda config: config.update(runs=[], logits={"my-model": entry}))
    planned = fresh_project.planned()
    assert planned["report"] == planned["import_logits"] == 1
    assert not {rule for rule in planned if rule == "claims" or "theory" in rule}
    assert fresh_project.planned("theory_all")["theory_figures"] == 1
    assert '"title": "my-model"' in fresh_project.snakemake("-n", "-p", "plan")
