"""Write the temperatures closest to Psi^gamma and the lines fitted to them."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence

from focalcal.common.io import write_text
from focalcal.theory.matching_table import fit_rows, matching_rows
from focalcal.theory.settings import theory_settings
from focalcal.theory.tables import csv_text


def main(argv: Sequence[str] | None = None) -> None:
    """Write one row a class count, box and gamma, and one row a fitted line."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "settings of the theory stage")
    parser.add_argument("--output", required=True, help="CSV: matching temperatures")
    parser.add_argument("--fits", required=True, help="CSV: lines of 1/T on gamma")
    arguments = parser.parse_args(argv)
    settings = theory_settings(arguments.spec)
    rows = matching_rows(settings)
    write_text(arguments.output, csv_text(rows))
    write_text(arguments.fits, csv_text(fit_rows(rows, settings.fit_ranges)))


if __name__ == "__main__":
    start(main)
