"""Write results/report.html: everything in one file that opens offline."""

from workflow_scripts.entry import spec_argument, start

import argparse
import json
import logging
from collections.abc import Sequence
from pathlib import Path

from focalcal.common.io import write_json, write_text
from focalcal.config.grid import build_grid
from focalcal.config.provenance import ROOT
from focalcal.reporting.report.contents import read_contents, report_html


def main(argv: Sequence[str] | None = None) -> None:
    """Write the report of one results folder, and the configuration it was made from."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "the whole configuration")
    parser.add_argument(
        "--results", required=True, type=Path, help="folder with tables/, figures/, runs/, ..."
    )
    parser.add_argument("--output", required=True, type=Path, help="report to write, .html")
    parser.add_argument(
        "--config", required=True, type=Path, help="the resolved configuration to write, .json"
    )
    arguments = parser.parse_args(argv)
    config = arguments.spec
    grid = build_grid(config, ROOT)
    contents = read_contents(arguments.results, config, grid)
    write_json(arguments.config, config)
    write_text(arguments.output, report_html(contents))
    summary = {"runs": len(contents.runs), "failed": len(contents.failed), **contents.verdicts}
    logging.getLogger(__name__).info("wrote %s: %s", arguments.output, json.dumps(summary))


if __name__ == "__main__":
    start(main)
