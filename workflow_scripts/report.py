"""results/report.html: everything in one file that opens offline."""

from workflow_scripts.entry import Spec, command, start

import json
import logging
from pathlib import Path

from focalcal.common.io import write_json, write_text
from focalcal.config.grid import build_grid
from focalcal.config.provenance import ROOT
from focalcal.reporting.report.contents import read_contents, report_html


@command
def main(spec: Spec, results: Path, output: Path, config: Path) -> None:
    """Write the report of one results folder, and the whole configuration that it was made from."""
    contents = read_contents(results, spec, build_grid(spec, ROOT))
    write_json(config, spec)
    write_text(output, report_html(contents))
    summary = {"runs": len(contents.runs), "failed": len(contents.failed), **contents.verdicts}
    logging.getLogger(__name__).info("wrote %s: %s", output, json.dumps(summary))


if __name__ == "__main__":
    start(main)
