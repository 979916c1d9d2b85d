"""Write the tables of the recovery stage: results/tables/recovery_*.csv, .md and .tex."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.reporting.records.recovery import read_settings
from focalcal.reporting.tables import formats
from focalcal.reporting.tables import recovery as recovery_tables


def main(argv: Sequence[str] | None = None) -> None:
    """Write every table of the configuration's runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "runs (dataset/model: loss: seeds), human")
    parser.add_argument("--results", required=True, type=Path, help="folder with runs/ and recovery/")
    parser.add_argument("--output", required=True, type=Path, help="folder to write tables into")
    arguments = parser.parse_args(argv)
    settings = read_settings(arguments.results, arguments.spec["runs"])
    tables = [
        recovery_tables.posterior_table(settings),
        recovery_tables.paradigm_table(settings),
        recovery_tables.diagnosis_table(settings, arguments.results),
    ]
    if arguments.spec["human"]:
        tables.append(recovery_tables.human_table(settings))
    for table in tables:
        formats.write_table(table, arguments.output)


if __name__ == "__main__":
    start(main)
