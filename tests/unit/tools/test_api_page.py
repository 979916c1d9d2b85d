"""The public names have complete docstrings, whose examples run."""

import doctest
from importlib import import_module

import pytest

from tests.project import ROOT
from tools.api_page import PUBLIC, docstring_sections

PAGE = (ROOT / "docs/api.md").read_text("utf-8")
NAMES = [(module, name) for module, names in PUBLIC.items() for name in names]


@pytest.mark.parametrize("name", [name for _, name in NAMES])
def test_an_example_of_the_page_runs_on_its_own_and_gives_what_it_states(name):
    section = PAGE.partition(f"### `{name}`")[2]
    example = section.partition("```pycon\n")[2].partition("```")[0]
    test = doctest.DocTestParser().get_doctest(example, {}, name, "docs/api.md", 0)
    assert test.examples
    runner = doctest.DocTestRunner(verbose=False)
    report = []
    runner.run(test, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_public_name_says_what_it_takes_and_returns(module, name):
    item = getattr(import_module(module), name)
    sections = docstring_sections(item)
    # Only `save` returns nothing: it writes a file.
    returns = set() if isinstance(item, type) or name == "save" else {"Returns"}
    assert {"", "Parameters", "Examples"} | returns <= set(sections)
    assert all(sections.values())
