"""Build tables, figures or charts from the files they declare."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.reporting.write import build_products


def main(argv: Sequence[str] | None = None) -> None:
    """Write each table as CSV, Markdown, LaTeX and HTML, each figure as PNG and PDF, each chart as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "kind, names and settings of the report")
    parser.add_argument("--results", required=True, type=Path, help="the results folder")
    parser.add_argument("--dataset-model", default="", help="DATASET/MODEL, for products made for each pair")
    arguments = parser.parse_args(argv)
    spec = arguments.spec
    build_products(arguments.results, spec["names"], spec["kind"], spec["settings"], arguments.dataset_model)


if __name__ == "__main__":
    start(main)
