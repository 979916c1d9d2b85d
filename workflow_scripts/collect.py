"""Collect all runs into four tidy tables: runs, metrics, comparisons and effects."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.config.grid import Grid
from focalcal.config.provenance import ROOT
from focalcal.reporting.records import collect


def main(argv: Sequence[str] | None = None) -> None:
    """Write the tables, or raise a UserError that names stale runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "the sections that define the runs, and the level of intervals")
    parser.add_argument(
        "--results", required=True, type=Path, help="folder with runs/, calibration/, recovery/; gets tables/"
    )
    arguments = parser.parse_args(argv)
    grid, tables = Grid(arguments.spec, ROOT), arguments.results / "tables"
    records = collect.read_records(grid, arguments.results)
    collect.write_runs(grid, records, tables / "runs.csv")
    collect.write_metrics(records, arguments.results, tables / "metrics.csv")
    comparisons = collect.write_comparisons(records, arguments.results, tables / "comparisons.csv")
    collect.write_effects(comparisons, grid, tables / "effects.csv")


if __name__ == "__main__":
    start(main)
