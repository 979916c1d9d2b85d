"""Mistakes in the text of a configuration are told with file and line."""

import pytest

from focalcal.__main__ import main
from focalcal.common.errors import UserError
from focalcal.common.messages import allowed_names
from focalcal.config.yaml_files import check_yaml_files
from focalcal.training.catalogue import likely_loss, parse_loss
from tests.project import ROOT


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"runs:\n\t- a\n", "line 2: the line begins with a tab; allowed: spaces"),
        (b"runs: []\nreport\n  title: a\n", "line 3: .*a colon or a quote is missing"),
        (b"runs: []\nreport: {title: 'a\n", "allowed: YAML"),
        ("a: b\nreport: {title: Käse}\n".encode("latin-1"), "line 2: a character is not in UTF-8"),
        (b"", "holds nothing; allowed: keys with values at the top level"),
        (b"- a\n", "holds a list; allowed: keys"),
        (b"a\n", "holds a text; allowed: keys"),
        (b"runs: []\nlogits: {}\nruns: []\n", "line 3: the key 'runs' stands in line 1 already"),
        (b"a:\n- b: 1\n  c: {d: 1, d: 2}\n", "line 3: the key 'd' stands in line 3 already"),
    ],
)
def test_the_line_of_a_mistake_is_named(tmp_path, content, message):
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    with pytest.raises(UserError, match=f"mine.yaml.*{message}"):
        check_yaml_files([path])


def test_what_may_repeat_does():
    check_yaml_files([ROOT / "config.yaml", *sorted((ROOT / "configs").glob("*.yaml"))])


def test_merged_keys_and_aliases_are_no_repetition(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("a: &a {x: 1}\nb: {<<: *a, <<: *a}\nc: [*a, *a]\n", encoding="utf-8")
    check_yaml_files([path])


def test_plan_reads_the_text_first(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Snakefile").write_text("", encoding="utf-8")
    (tmp_path / "config.yaml").write_text("a: 1\n", encoding="utf-8")
    assert main(["plan", "mine.yaml"]) == 2
    assert "mine.yaml does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "names", "meant"),
    [
        ("lr", ("learning_rate", "momentum"), "learning_rate"),
        ("TS", ("ts", "fts"), "ts"),
        ("x", ("abc",), ""),
    ],
)
def test_initials_and_capitals_find_a_name(given, names, meant):
    assert allowed_names(given, names).endswith(f"did you mean {meant!r}?" if meant else "abc")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("focal3", "focal-3"),
        ("FL-3", "focal-3"),
        ("Focal_0.5", "focal-0.5"),
        ("cross-entropy", "ce"),
        ("not-stated", ""),
        ("ce2", ""),
        ("focal", ""),
        ("focal-3", ""),
    ],
)
def test_a_loss_that_is_spelt_otherwise_is_suggested(given, meant):
    assert likely_loss(given) == meant
    if meant:
        with pytest.raises(UserError, match=f"unknown loss '{given}'; .*did you mean '{meant}'"):
            parse_loss(given)
