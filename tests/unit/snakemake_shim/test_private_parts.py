"""Parts of Snakemake that it does not document, each with what would replace it."""

import re

import pytest
from snakemake.api import Workflow

from tests.project import ROOT

DOCUMENTED = {"basedir", "current_basedir"}
REPLACEMENTS = {
    "overwrite_configfiles": "its own title, report.title, in every overlay: drop titles.fill_in",
    "is_main_process": "reading the user's logits in every job of a cluster: drop read_own_files",
}
"""The third is where Snakemake keeps its records (`copied_results.RECORDS`): without it, a folder that was
copied without them would go unnoticed until its tables are made again."""


def test_rules_use_no_other_part_of_the_workflow_object():
    sources = [ROOT / "Snakefile", *(ROOT / "rules").glob("*.smk")]
    used = {name for path in sources for name in re.findall(r"\bworkflow\.(\w+)", path.read_text("utf-8"))}
    assert used == DOCUMENTED | REPLACEMENTS.keys()


@pytest.mark.parametrize("name", REPLACEMENTS)
def test_snakemake_still_has_the_part(name):
    assert isinstance(getattr(Workflow, name, None), property), f"instead: {REPLACEMENTS[name]}"


def test_only_the_plugin_imports_snakemake():
    plugin = [path.read_text("utf-8") for path in (ROOT / "snakemake_logger_plugin_focalcal").glob("*.py")]
    rules = [path.read_text("utf-8") for path in (ROOT / "rules").glob("*.smk")]
    imported = set(re.findall(r"^(?:from|import) (snakemake\w*)", "\n".join(plugin + rules), re.MULTILINE))
    assert imported == {"snakemake_interface_logger_plugins", "snakemake_logger_plugin_focalcal"}
