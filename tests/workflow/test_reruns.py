"""Only what changed runs again in a finished project: Snakemake's own plans.

`test_code_reruns.py` has the jobs that each kind of edit concerns; here is what Snakemake makes of them.
"""

import base64
import os
import shutil
import subprocess
import sys

import pytest

from tests.project import Project, copy_sources, planned_jobs

STAGE_OF_RULE = {
    "fetch_data": "data",
    "inspect_data": "data",
    "train": "training",
    "dump_logits": "training",
    "calibrate": "calibration",
    "recover": "recovery",
    "recovery_figures": "recovery",
}


def stages(planned):
    """Return the stages that a dry run would rerun; rules of no stage in the table count as reporting."""
    theory = {rule for rule in planned if rule.startswith("theory")}
    assert not theory, "no test here changes the theory"
    return {STAGE_OF_RULE.get(rule, "reporting") for rule in planned}


def test_a_second_run_has_nothing_to_do_although_every_source_was_touched(project):
    for path in project.root.rglob("*.py"):
        os.utime(path)
    for name in ("Snakefile", "config.yaml"):
        os.utime(project.root / name)
    assert project.planned() == {}


def test_checking_out_another_version_and_back_reruns_nothing(project):
    def git(*arguments):
        identity = ["-c", "user.name=tester", "-c", "user.email=tester@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=project.root, check=True, capture_output=True)

    git("init", "--initial-branch=main")
    git(
        "add",
        "Snakefile",
        "config.yaml",
        "configs",
        "rules",
        "schemas",
        "profiles",
        "focalcal",
        "workflow_scripts",
    )
    git("commit", "--message", "one")
    git("checkout", "-b", "other")
    project.edit("focalcal/training/losses.py", "import torch", "import torch\n\nCHANGED = True")
    git("commit", "--all", "--message", "two")
    assert "train" in project.planned()
    git("checkout", "main")
    assert project.planned() == {}


def test_fresh_clone_with_copied_results_reruns_nothing(finished_project, tmp_path):
    clone = Project(tmp_path / "clone")
    copy_sources(clone.root)
    shutil.copy2(finished_project.root / "config.yaml", clone.root / "config.yaml")
    # A plain copy gives every file a new modification time, in arbitrary order.
    for name in ("results", ".snakemake"):
        shutil.copytree(finished_project.root / name, clone.root / name, copy_function=shutil.copyfile)
    assert clone.planned() == {}


def test_what_a_killed_snakemake_left_half_made_is_made_again(project):
    """Snakemake marks outputs while their job runs, by their names in base 64."""
    output = "results/tables/metrics.csv"
    mark = project.root / ".snakemake" / "incomplete" / base64.urlsafe_b64encode(output.encode()).decode()
    mark.parent.mkdir(exist_ok=True)
    mark.touch()
    assert project.planned(output) == {"collect": 1}


def test_an_edited_loss_reruns_training_and_later_for_a_reason_that_names_it(project):
    project.edit("focalcal/training/losses.py", "import torch", "import torch\n\nCHANGED = True")
    plan = project.snakemake("-n")
    planned = planned_jobs(plan)
    assert planned["train"] == 4
    assert stages(planned) == {"training", "calibration", "recovery", "reporting"}
    reasons = [line for line in plan.splitlines() if "Params have changed" in line]
    assert len(reasons) >= 4
    for reason in reasons:
        assert reason.count("focalcal/training/losses.py=") == 2
        assert reason.count(".py=") == 2


@pytest.mark.parametrize(("key", "value"), [("losses", "focal-0.5"), ("seeds", 7)])
def test_new_gamma_or_seed_runs_only_the_new_runs(project, key, value):
    project.configure(lambda config: config["runs"][0][key].append(value))
    planned = project.planned()
    assert planned["train"] == planned["dump_logits"] == planned["calibrate"] == 2
    assert planned["recover"] == 1
    assert stages(planned) == {"training", "calibration", "recovery", "reporting"}


def test_an_accepted_change_of_code_runs_nothing_again_but_what_tells_of_it(project):
    def change(path, text):
        project.edit(
            f"focalcal/{path}", "from pathlib import Path\n", f"from pathlib import Path\n\n{text}\n"
        )

    change("training/loop.py", "CHANGED = True")
    change("calibration/files/logits_io.py", "CHANGED = True")
    (project.root / "focalcal/calibration/renamed.py").write_text("CHANGED = True\n", encoding="utf-8")
    project.edit(
        "focalcal/calibration/metrics.py", "import numpy", "import focalcal.calibration.renamed\nimport numpy"
    )
    computing = {"train", "dump_logits", "calibrate", "recommend", "recover"}
    assert set(project.planned()) > computing
    command = [sys.executable, "-m", "focalcal", "accept", "--reason", "Nothing is computed otherwise"]
    subprocess.run(command, cwd=project.root, check=True, capture_output=True)
    planned = project.planned()
    assert {"collect", "report"} < set(planned)
    assert not computing & set(planned)
    project.snakemake("results/tables/runs.csv")
    assert (project.root / "results/tables/runs.csv").read_text("utf-8").count(
        "Nothing is computed otherwise ("
    ) == 4
    change("training/loop.py", "CHANGED = False")
    assert project.planned()["train"] == 4


def test_another_shown_criterion_fits_nothing_again(project):
    project.configure(lambda config: config["report"].update(criterion="ece"))
    planned = project.planned()
    assert "tables" in planned
    assert not {"calibrate", "recommend", "recover"} & set(planned)


def test_changed_dataset_parameter_reruns_from_its_data_on(project):
    project.configure(lambda config: config["datasets"]["gauss-3"].update(seed=9))
    assert stages(project.planned()) == {"data", "training", "calibration", "recovery", "reporting"}


def test_changed_title_or_throughput_reruns_the_report_only(project):
    project.configure(lambda config: config["report"].update(title="Another"))
    project.configure(lambda config: config["plan"]["images_per_second"].update(mlp=1000))
    assert project.planned() == {"report": 1}
