"""Write the exact numbers of the theory: tables, and the proof of the temperature bounds."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.common.csv_rows import write_rows
from focalcal.common.io import write_json
from focalcal.theory.certificate import certificate
from focalcal.theory.settings import theory_settings
from focalcal.theory.tables import bounds_summary, tables


def main(argv: Sequence[str] | None = None) -> None:
    """Write one CSV per table, the summary of the bounds and their certificate."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "settings of the theory stage")
    parser.add_argument("--output", required=True, type=Path, help="folder for the tables")
    arguments = parser.parse_args(argv)
    settings = theory_settings(arguments.spec)
    for name, rows in tables(settings).items():
        write_rows(arguments.output / f"{name}.csv", rows)
    summary = bounds_summary(settings.scanned_gammas, settings.max_logit)
    write_json(arguments.output / "bounds.json", summary)
    write_json(arguments.output / "certificate.json", certificate(settings.certified_gammas))


if __name__ == "__main__":
    start(main)
