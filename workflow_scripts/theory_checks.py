"""Write the numbers that decide the papers' theoretical statements."""

from workflow_scripts.entry import start

import argparse
from collections.abc import Sequence

from focalcal.common.io import write_text
from focalcal.theory.checks import check_rows
from focalcal.theory.checks_c21 import c21_checks
from focalcal.theory.checks_k24 import k24_checks
from focalcal.theory.checks_m20 import m20_checks
from focalcal.theory.tables import csv_text


def main(argv: Sequence[str] | None = None) -> None:
    """Write one row a check: name, value, where it occurs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", required=True, help="CSV: name, value, detail")
    arguments = parser.parse_args(argv)
    write_text(arguments.output, csv_text(check_rows({**k24_checks(), **m20_checks(), **c21_checks()})))


if __name__ == "__main__":
    start(main)
