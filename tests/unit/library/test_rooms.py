"""Imports between rooms go one way, as the table of CONTRIBUTING.md says."""

import ast
import re

from tests.project import ROOT

ROW = re.compile(r"^\| [^|]+ \| `focalcal/(\w+)` \| ([^|]+) \|$", re.MULTILINE)
EVERYTHING = "all of these rooms"


def imported(path):
    """Yield the dotted name of every module that a file imports, also within functions."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_a_room_imports_only_what_the_table_allows():
    table = dict(ROW.findall((ROOT / "CONTRIBUTING.md").read_text("utf-8")))
    rooms = {path.name for path in (ROOT / "focalcal").iterdir() if (path / "__init__.py").is_file()}
    assert table.keys() == rooms
    for room, text in table.items():
        allowed = rooms if text == EVERYTHING else {room, *re.findall(r"`(\w+)`", text)}
        for path in (ROOT / "focalcal" / room).rglob("*.py"):
            names = [name.split(".") for name in imported(path)]
            used = {name[1] for name in names if name[0] == "focalcal"}
            assert used <= allowed, path
            packages = {name[0] for name in names}
            assert "snakemake" not in packages, path
            assert "torch" not in packages or text.endswith(", torch"), path


def test_importing_a_room_runs_nothing():
    for path in (ROOT / "focalcal").glob("*/**/__init__.py"):
        assert path.read_text("utf-8") == "", path
