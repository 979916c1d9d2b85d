from workflow_scripts.entry import command, run

import io
import json
from pathlib import Path
from typing import Any

import pytest

received = []


@command
def main(
    spec: dict[str, Any], a_file: Path, many: list[Path], maybe: Path | None = None, word: str = ""
) -> None:
    """Do nothing."""
    received[:] = [spec, a_file, many, maybe, word]


FILES = ["--a-file", "a", "--many", "b", "c"]


def test_the_parameters_of_a_command_are_its_arguments():
    main(["--spec", "{}", *FILES])
    assert received == [{}, Path("a"), [Path("b"), Path("c")], None, ""]
    main(["--spec", "{}", *FILES, "--maybe", "d", "--word", "e"])
    assert received[3:] == [Path("d"), "e"]
    main(["--spec", "{}", *FILES, "--maybe"])
    assert received[3] is None, "a rule whose input is optional passes no file"


@pytest.mark.parametrize("argv", [["--spec", "{}"], ["--spec", "{}", *FILES, "--other", "1"]])
def test_an_argument_that_is_missing_or_unknown_is_refused(argv, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(argv)
    assert "--a-file" in capsys.readouterr().err


def test_a_spec_is_read_from_the_argument_or_from_standard_input(monkeypatch):
    spec = {"runs": ["x" * 100] * 3000}
    text = json.dumps(spec)
    assert len(text) > 300_000
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    main(["--spec", "-", *FILES])
    assert received[0] == spec


@pytest.mark.parametrize(
    ("text", "problem"), [("{", "--spec is not JSON: Expecting "), ("[1]", "--spec is not a JSON object; ")]
)
def test_a_spec_that_is_not_a_json_object_ends_in_one_line_and_exit_code_2(capsys, text, problem):
    assert run(main, ["--spec", text, *FILES]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"error: {problem}")
    assert message.endswith("; allowed: a JSON object, as the rule passes it\n")
    assert message.count("\n") == 1
