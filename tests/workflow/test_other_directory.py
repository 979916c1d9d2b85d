"""Snakemake in another folder (`--snakefile`, `--directory`, `module`): products go there."""

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


def test_the_configuration_beside_the_snakefile_is_read(elsewhere):
    assert elsewhere.planned(*SNAKEFILE)["train"] == 4


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
    shell: "touch {output}"
"""


def test_another_workflow_uses_this_one_as_a_module(elsewhere):
    (elsewhere.root / "Snakefile").write_text(MODULE)
    assert elsewhere.planned("focalcal_all")["focalcal_train"] == 4
    elsewhere.snakemake()
    assert (elsewhere.root / "results" / "data" / "gauss-3.npz").is_file()


def test_another_workflow_gives_the_module_its_own_settings(elsewhere):
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
