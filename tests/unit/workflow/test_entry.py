from workflow_scripts.entry import json_or_stdin

import io
import json
import re

import pytest

from focalcal.workflow.provenance import ROOT


def test_a_spec_is_read_from_the_argument_or_from_standard_input(monkeypatch):
    spec = {"runs": ["x" * 100] * 3000}
    text = json.dumps(spec)
    assert len(text) > 300_000
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert json_or_stdin("-") == spec
    assert json_or_stdin('{"runs": []}') == {"runs": []}


@pytest.mark.parametrize("rule", ["plan", "aggregate", "report", "recovery_tables", "recovery_figures"])
def test_specs_that_grow_with_the_runs_go_through_standard_input(rule):
    rules = "".join(path.read_text("utf-8") for path in sorted((ROOT / "rules").glob("*.smk")))
    body = re.search(rf"^rule {rule}:\n(.*?)(?=^\S)", rules, re.MULTILINE | re.DOTALL)[1]
    command = "".join(re.findall(r'^ {8}"(.*)"$', body.partition("shell:")[2], re.MULTILINE))
    assert command.startswith(f"printf %s {{params.spec:q}} | python -m workflow_scripts.{rule} --spec - ")
