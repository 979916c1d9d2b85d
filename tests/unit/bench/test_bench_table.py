import json

import pytest

from bench import _table
from bench._table import Row, finish, parser, progress


@pytest.mark.parametrize(
    ("row", "goal", "verdict"),
    [
        (Row("a", 2.0, at_least=1.5), "at least 1.5", "reached"),
        (Row("a", 1.0, at_least=1.5), "at least 1.5", "MISSED"),
        (Row("a", 3.0, at_most=3), "at most 3", "reached"),
        (Row("a", float("nan"), at_most=3), "at most 3", "MISSED"),
        (Row("a", 3.0), "", ""),
    ],
)
def test_a_number_is_judged_by_its_goal(row, goal, verdict):
    assert (row.goal, row.verdict) == (goal, verdict)


def test_a_room_ends_with_a_table_and_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_table, "RESULTS", tmp_path / "results")
    assert parser("First line.\nMore.").parse_args(["--quick"]).quick
    progress("a step")
    finish("room", [Row("peer / ours", 2.0, at_least=1.5), Row("seconds", 4.25)], {"threads": 2})
    first, *_, ratio, seconds = capsys.readouterr().out.splitlines()
    assert first.endswith("s] a step")
    assert ratio.split() == ["peer", "/", "ours", "2.000", "at", "least", "1.5", "reached"]
    assert seconds.split() == ["seconds", "4.250"]
    written = json.loads((tmp_path / "results" / "room.json").read_text("utf-8"))
    assert written["details"] == {"threads": 2}
    assert written["table"][0]["verdict"] == "reached"
