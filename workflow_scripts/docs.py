"""Write the generated pages of docs/: the rules, the configuration, all names, the library, the findings."""

from workflow_scripts.entry import start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.common.io import write_text
from focalcal.reporting.api_page import api_page
from focalcal.reporting.findings import finding_pages, write_figures
from focalcal.reporting.reference_pages import configuration_page, names_page, rules_page
from focalcal.workflow.provenance import ROOT

STUDIES = ROOT / "docs" / "reference-run"
PAGES = {"rules": rules_page, "configuration": configuration_page, "names": names_page, "api": api_page}


def main(argv: Sequence[str] | None = None) -> None:
    """Write the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "docs", help="where to write them")
    folder = parser.parse_args(argv).folder
    for name, page in PAGES.items():
        write_text(folder / f"{name}.md", page())
    for name, text in finding_pages(STUDIES).items():
        write_text(folder / STUDIES.name / name, text)
    write_figures(STUDIES, folder / STUDIES.name / "figures")


if __name__ == "__main__":
    start(main)
