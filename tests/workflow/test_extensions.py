"""The files of docs/extend.md in one small comparison, what an edit of each reruns, and mistakes in them."""

import ast
import csv
import re

import pytest

from tests.project import ROOT, tiny_recipe

BLOCK = re.compile(r"^```(\w+)\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = {name: text for _, name, text in BLOCK.findall((ROOT / "docs" / "extend.md").read_text("utf-8"))}
CONFIG = ("--configfile", "own.yaml")


def with_the_files_of_the_page(project):
    """Return a project with the files of the page and a short recipe."""
    for name, text in FILES.items():
        path = project.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    project.configure(lambda config: config.update(recipes={"quickstart": tiny_recipe()}))
    for old, new in (("count: 1500", "count: 300"), ("[ce, focal-2, bounded", "[ce, bounded")):
        project.edit("own.yaml", old, new)
    return project


@pytest.fixture(scope="module")
def extended(finished_project, tmp_path_factory):
    """A finished project with the files of the page, its workflow run again."""
    project = finished_project.copy(tmp_path_factory.mktemp("extended") / "project")
    with_the_files_of_the_page(project)
    project.snakemake(*CONFIG)
    return project


def rows(project, name):
    with (project.root / "results" / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as source:
        return list(csv.DictReader(source))


def test_there_is_one_short_example_of_each_kind():
    kinds = [name.split("/")[1] for name in FILES if name.startswith("extensions/")]
    assert sorted(kinds) == ["calibrators", "datasets", "losses", "metrics", "models"]
    for name, text in FILES.items():
        if name.endswith(".py"):
            assert len(text.splitlines()) < 25, name
            assert ast.parse(text).body


def test_everything_is_compared_with_everything(extended):
    found = rows(extended, "metrics")
    assert {row["dataset"] for row in found} == {"rings"}
    assert {row["model"] for row in found} == {"mlp", "tanh"}
    assert {row["loss"] for row in found} == {"ce", "bounded", "bounded-0.3"}
    assert "shrinkage" in {row["method"] for row in found}
    assert {row["method"] for row in found if row["metric"] == "overconfidence"} >= {"none", "shrinkage"}
    assert "shrinkage" in (extended.root / "results/tables/arena.md").read_text("utf-8")
    report = (extended.root / "results/report.html").read_text("utf-8")
    for name in ("shrinkage", "overconfidence", "bounded", "tanh", "rings"):
        assert name in report
    assert len(rows(extended, "recommended")) == 6


@pytest.mark.parametrize(
    ("file", "old", "new", "runs_again"),
    [
        ("losses/bounded.py", "0.7 if", "0.6 if", {"train": 4, "calibrate": 4, "recommend": 4}),
        ("models/tanh.py", "64", "32", {"train": 3, "calibrate": 3, "recommend": 3}),
        ("calibrators/shrinkage.py", "0.001, 1", "0.002, 1", {"train": 0, "calibrate": 6, "recommend": 6}),
        ("metrics/overconfidence.py", "max(0.0", "max(0.1", {"train": 0, "calibrate": 6, "recommend": 6}),
        ("datasets/rings.py", "1 + labels", "2 + labels", {"train": 6, "calibrate": 6, "recommend": 6}),
        ("losses/bounded.py", "import torch", "# why\nimport torch", {}),
    ],
)
def test_an_edit_reruns_what_uses_the_file(extended, tmp_path, file, old, new, runs_again):
    project = extended.copy(tmp_path / "edited")
    project.edit(f"extensions/{file}", old, new)
    planned = project.planned(*CONFIG)
    if not runs_again:
        assert planned == {}
    for rule, count in runs_again.items():
        assert planned.get(rule, 0) == count, planned


def test_a_file_that_nothing_uses_reruns_nothing(extended, tmp_path):
    project = extended.copy(tmp_path / "unused")
    (project.root / "extensions/calibrators/unused.py").write_text(
        FILES["extensions/calibrators/shrinkage.py"], encoding="utf-8"
    )
    (project.root / "extensions/losses/unused.py").write_text(
        FILES["extensions/losses/bounded.py"], encoding="utf-8"
    )
    assert project.planned(*CONFIG) == {}


def test_a_mistake_is_refused_before_any_job_in_one_line(fresh_project):
    project = with_the_files_of_the_page(fresh_project)
    (project.root / "extensions" / "models" / "mine.py").write_text("def build(:", encoding="utf-8")
    output = project.snakemake("-n", *CONFIG, expect=2)
    (error,) = [line for line in output.splitlines() if line.startswith("error: ")]
    assert error.startswith("error: extensions/models/mine.py, line 1: ")
    assert "Traceback" not in output
