"""Parts of Snakemake that it does not document, each with what would replace it."""

import re
import subprocess
import sys

import pytest
from snakemake.api import Workflow

from focalcal.common.errors import UserError
from focalcal.snakemake_shim import copied_results
from tests.project import ROOT

DOCUMENTED = {"basedir", "current_basedir"}
PLACE_OF_RECORDS = "the check where there is nothing to do (records/state.py): drop copied_results.py"
REPLACEMENTS = {
    "overwrite_configfiles": "its own title, report.title, in every overlay: drop titles.fill_in",
    "is_main_process": "reading the user's logits in every job of a cluster: drop read_own_files",
}
"""The third is where Snakemake keeps its records."""


def test_rules_use_no_other_part_of_the_workflow_object():
    sources = [ROOT / "Snakefile", *(ROOT / "rules").glob("*.smk")]
    used = {name for path in sources for name in re.findall(r"\bworkflow\.(\w+)", path.read_text("utf-8"))}
    assert used == DOCUMENTED | REPLACEMENTS.keys()


@pytest.mark.parametrize("name", REPLACEMENTS)
def test_snakemake_still_has_the_part(name):
    assert isinstance(getattr(Workflow, name, None), property), f"instead: {REPLACEMENTS[name]}"


@pytest.mark.parametrize("backend", ["file", "db"])
def test_snakemake_still_keeps_its_records_there(tmp_path, backend):
    rule = f"rule:\n    output: '{copied_results.TABLE}'\n    shell: 'touch {{output}}'\n"
    (tmp_path / "Snakefile").write_text(rule)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--persistence-backend", backend]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    try:
        copied_results.refuse_without_records(tmp_path)
    except UserError:
        pytest.fail(f"instead: {PLACE_OF_RECORDS}")


def test_only_the_plugin_imports_snakemake():
    plugin = [path.read_text("utf-8") for path in (ROOT / "snakemake_logger_plugin_focalcal").glob("*.py")]
    rules = [path.read_text("utf-8") for path in (ROOT / "rules").glob("*.smk")]
    imported = set(re.findall(r"^(?:from|import) (snakemake\w*)", "\n".join(plugin + rules), re.MULTILINE))
    assert imported == {"snakemake_interface_logger_plugins", "snakemake_logger_plugin_focalcal"}
