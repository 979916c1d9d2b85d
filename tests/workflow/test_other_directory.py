"""Snakemake in another folder (`--snakefile`, `--directory`, `module`): products go there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.project import Project, copy_sources, make_tiny

SNAKEFILE = ("--snakefile", "../sources/Snakefile")


@pytest.fixture
def elsewhere(tmp_path):
    """A folder without sources, beside a small copy of the project."""
    sources = Project(tmp_path / "sources")
    copy_sources(sources.root)
    sources.configure(make_tiny)
    folder = Project(tmp_path / "elsewhere")
    folder.root.mkdir()
    return folder


@pytest.mark.parametrize("folder", ["", "workflow/"])
def test_the_configuration_beside_the_snakefile_is_read(elsewhere, folder):
    assert elsewhere.planned("--snakefile", f"../sources/{folder}Snakefile")["train"] == 4


def test_an_overlay_and_the_command_line_win_over_it(elsewhere):
    (elsewhere.root / "overlay.yaml").write_text("report: {title: Overlaid, resamples: 200}\n")
    settings = ("--configfile", "overlay.yaml", "--config", "report={title: Said}")
    output = elsewhere.snakemake(*SNAKEFILE, "-n", "-p", "plan", *settings)
    assert '"title": "Said"' in output
    assert '"resamples": 200' in output
    assert '"recipe": "tiny"' in output


MODULE = """
module focalcal:
    snakefile: "../sources/Snakefile"

use rule * from focalcal as focalcal_*

rule mine:
    default_target: True
    input: rules.focalcal_data_all.input
    output: "mine.txt"
    shell: "python scripts/mine.py > {output}"
"""


@pytest.fixture
def host(elsewhere, monkeypatch):
    """A workflow that uses the copy as a module, in an environment that has it, with its own program."""
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.setenv("PYTHONPATH", str(elsewhere.root.parent / "sources"))
    (elsewhere.root / "Snakefile").write_text(MODULE)
    (elsewhere.root / "scripts").mkdir()
    (elsewhere.root / "scripts" / "sibling.py").write_text("import os\n")
    # Python looks for the sibling beside the program, unless PYTHONSAFEPATH is set.
    program = "from sibling import os\nprint(os.environ['PATH'], os.environ['PYTHONPATH'], sep='\\n')\n"
    (elsewhere.root / "scripts" / "mine.py").write_text(program)
    return elsewhere


def test_another_workflow_uses_this_one_as_a_module_and_keeps_its_environment(host):
    assert host.planned("focalcal_all")["focalcal_train"] == 4
    host.snakemake()
    assert (host.root / "results" / "data" / "gauss-3.npz").is_file()
    seen = (host.root / "mine.txt").read_text("utf-8").splitlines()
    assert seen == [os.environ["PATH"], os.environ["PYTHONPATH"]]


def test_a_module_is_refused_where_jobs_would_not_find_it(host, monkeypatch):
    monkeypatch.delenv("PYTHONPATH")
    assert "error: jobs of the module at" in host.snakemake("-n", expect=2)


def test_a_snakefile_on_a_remote_host_is_refused_with_what_to_do(elsewhere):
    sources = elsewhere.root.parent / "sources"
    identity = ["-c", "user.name=tester", "-c", "user.email=tester@example.org"]
    for command in (["init", "--initial-branch=main"], ["add", "."], ["commit", "--message=one"]):
        subprocess.run(["git", *identity, *command], cwd=sources, check=True, capture_output=True)
    remote = 'gitfile("../sources", path="workflow/Snakefile", ref="main")'
    (elsewhere.root / "Snakefile").write_text(MODULE.replace('"../sources/Snakefile"', remote))
    said = elsewhere.snakemake("-n", expect=1)
    assert "clone the repository and name the Snakefile of the clone" in said


def test_another_workflow_gives_the_module_its_own_settings(host):
    elsewhere = host
    sources = elsewhere.root.parent / "sources"
    settings = yaml.safe_load((sources / "config.yaml").read_text("utf-8"))
    settings["runs"][0]["seeds"] = [7]
    (elsewhere.root / "ours.yaml").write_text(yaml.safe_dump({"ours": 1, "focalcal": settings}))
    given = 'Snakefile"\n    config: config["focalcal"]\n'
    (elsewhere.root / "Snakefile").write_text(
        'configfile: "ours.yaml"\n' + MODULE.replace('Snakefile"\n', given)
    )
    assert elsewhere.planned("focalcal_all")["focalcal_train"] == 2


def test_products_are_made_in_the_folder_but_not_by_its_modules(elsewhere):
    """Another checkout, or a file with the name of a package: neither may be what jobs import."""
    for name in ("focalcal/__init__.py", "workflow_scripts/__init__.py", "numpy.py"):
        module = elsewhere.root / name
        module.parent.mkdir(exist_ok=True)
        module.write_text("raise ImportError('a module of the working directory')")
    sources = Project(elsewhere.root.parent / "sources")
    sources.snakemake("--directory", "../elsewhere", "data_all")
    assert (elsewhere.root / "results" / "data" / "gauss-3.npz").is_file()
    assert not (sources.root / "results").exists()
