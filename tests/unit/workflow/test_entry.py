from workflow_scripts.entry import run, spec_argument

import argparse
import io
import json

import pytest


def spec_of(argv):
    parser = argparse.ArgumentParser()
    spec_argument(parser, "runs")
    return parser.parse_args(argv).spec


def test_a_spec_is_read_from_the_argument_or_from_standard_input(monkeypatch):
    spec = {"runs": ["x" * 100] * 3000}
    text = json.dumps(spec)
    assert len(text) > 300_000
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert spec_of(["--spec", "-"]) == spec
    assert spec_of(["--spec", '{"runs": []}']) == {"runs": []}


@pytest.mark.parametrize(
    ("text", "problem"), [("{", "--spec is not JSON: Expecting "), ("[1]", "--spec is not a JSON object; ")]
)
def test_a_spec_that_is_not_a_json_object_ends_in_one_line_and_exit_code_2(capsys, text, problem):
    assert run(spec_of, ["--spec", text]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"error: {problem}")
    assert message.endswith("; allowed: a JSON object with runs\n")
    assert message.count("\n") == 1
