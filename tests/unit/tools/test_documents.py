"""What is generated or stated twice in documents agrees with its source."""

import re

import yaml

import focalcal
from tests.project import ROOT
from tools import api_page, findings, reference_pages


def text(name):
    return (ROOT / name).read_text("utf-8")


def test_the_committed_pages_are_those_that_make_docs_writes(tmp_path):
    docs = tmp_path / "docs"
    reference_pages.main(["--folder", str(docs)])
    api_page.main(["--folder", str(docs)])
    findings.main(["--folder", str(docs / "reference-run")])
    written = {str(path.relative_to(tmp_path)): path.read_text("utf-8") for path in tmp_path.rglob("*.md")}
    pages = ("rules", "configuration", "names", "api", "reference-run/README")
    assert {"README.md", *(f"docs/{name}.md" for name in pages)} <= set(written)
    assert written == {name: text(name) for name in written}


def test_the_latest_release_notes_are_those_of_the_version():
    version = focalcal.__version__
    heading = r"^## (\d+\.\d+\.\d+), (?:\d{4}-\d\d-\d\d|unreleased)$"
    versions = re.findall(heading, text("CHANGELOG.md"), re.MULTILINE)
    assert versions[0] == version
    assert len(versions) == len(re.findall(r"^## ", text("CHANGELOG.md"), re.MULTILINE))
    assert yaml.safe_load(text("CITATION.cff"))["version"] == version
