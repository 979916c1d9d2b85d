"""The public names have complete docstrings, whose examples run."""

import doctest
from importlib import import_module

import pytest

from focalcal.reporting.api_page import PUBLIC, docstring_sections
from tests.project import ROOT

NAMES = [(module, name) for module, names in PUBLIC.items() for name in names]


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_the_examples_of_a_public_name_run_and_give_what_they_state(module, name):
    item = getattr(import_module(module), name)
    (test,) = [found for found in doctest.DocTestFinder(recurse=False).find(item, name) if found.examples]
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


def test_the_page_has_every_public_name():
    page = (ROOT / "docs/api.md").read_text("utf-8")
    assert all(f"### `{name}`" in page for _, name in NAMES)
