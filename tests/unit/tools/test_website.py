"""The documentation builds as a site without a warning, and every link of it leads somewhere."""

import re

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from tests.project import ROOT
from tools import website


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder)))  # strict: a warning is an error
    return folder


def test_every_link_leads_to_a_file_of_the_site(site):
    broken, checked = [], 0
    for page in site.rglob("*.html"):
        for link in re.findall(r'(?:href|src)="([^"#]+)', page.read_text("utf-8")):
            if re.match(r"https?:|mailto:|data:|javascript:", link):
                continue
            checked += 1
            if page.name not in {"404.html", "report.html"} and not (page.parent / link).exists():
                broken.append(f"{page.relative_to(site)}: {link}")
    assert checked > 500
    assert broken == []


def test_the_site_loads_nothing_from_elsewhere(site):
    asked = {
        link
        for page in site.rglob("*.html")
        for link in re.findall(r'<(?:script|img)[^>]* src="(https?:[^"]+)', page.read_text("utf-8"))
    }
    assert asked == set()
    assert "window.Worker" in (site / website.SEARCH).read_text("utf-8")


def test_pages_from_outside_docs_are_in_the_site(site):
    assert "logits" in (site / "index.html").read_text("utf-8")
    assert (site / "files" / "config.yaml").read_text("utf-8") == (ROOT / "config.yaml").read_text("utf-8")
    assert "calibrate_torch_logits.py" in (site / "examples" / "index.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("path", "link", "expected"),
    [
        ("README.md", "docs/api.md", "api.md"),
        ("README.md", "docs/examples", "examples/index.md"),
        ("docs/slurm.md", "../profiles/slurm/config.yaml", "files/profiles/slurm/config.yaml"),
        ("docs/reference-run/papers.md", "../recommend.md", "../recommend.md"),
        ("docs/reference-run/papers.md", "../../config.yaml", "../files/config.yaml"),
        ("focalcal/data/networks/README.md", "../../../docs/extend.md", "extend.md"),
    ],
)
def test_a_link_between_files_is_one_between_pages(path, link, expected):
    text = f"[a]({link}#b) [c](https://d.org/e) [f](#g)"
    assert website._relinked(text, path) == f"[a]({expected}#b) [c](https://d.org/e) [f](#g)"
