"""Write the temperatures that enclose the binary focal calibration map."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence

from focalcal.common.io import write_json, write_text
from focalcal.theory.bounds_table import bounds_rows, bounds_summary
from focalcal.theory.settings import theory_settings
from focalcal.theory.tables import csv_text


def main(argv: Sequence[str] | None = None) -> None:
    """Write the table of bounds for every gamma, and their summary with the critical gamma."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "settings of the theory stage")
    parser.add_argument("--output", required=True, help="CSV: one row a gamma")
    parser.add_argument("--summary", required=True, help="JSON: critical gamma and K24's scan")
    arguments = parser.parse_args(argv)
    settings = theory_settings(arguments.spec)
    write_text(arguments.output, csv_text(bounds_rows(settings.gammas, settings.max_logit)))
    write_json(arguments.summary, bounds_summary(settings.scanned_gammas, settings.max_logit))


if __name__ == "__main__":
    start(main)
