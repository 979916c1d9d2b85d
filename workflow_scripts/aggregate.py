"""Collect all runs into results/tables/metrics.csv and results/tables/runs.csv."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.config.grid import Grid
from focalcal.config.provenance import ROOT
from focalcal.reporting.records import aggregate


def main(argv: Sequence[str] | None = None) -> None:
    """Write both tables, or raise a UserError that names stale runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "the sections that define the runs")
    parser.add_argument(
        "--results", required=True, type=Path, help="folder with runs/, calibration/, recovery/"
    )
    parser.add_argument("--metrics", required=True, type=Path, help="tidy table to write")
    parser.add_argument("--runs", required=True, type=Path, help="table of runs and their status to write")
    arguments = parser.parse_args(argv)
    grid = Grid(arguments.spec, ROOT)
    records = aggregate.read_records(grid, arguments.results)
    aggregate.write_metrics(records, arguments.results, arguments.metrics)
    aggregate.write_runs(grid, records, arguments.runs)


if __name__ == "__main__":
    start(main)
