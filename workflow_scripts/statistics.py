"""Write comparisons of calibrators, their ranking, selection's optimism and bound hits as tables."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.reporting.records.files import read_diagnostics, read_fits, read_runs, succeeded
from focalcal.reporting.records.measurements import load_metrics
from focalcal.reporting.tables import summary


def main(argv: Sequence[str] | None = None) -> None:
    """Write CSV, Markdown and LaTeX of each table."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "metric, criterion")
    parser.add_argument("--metrics", required=True, type=Path, help="tidy metrics, .csv")
    parser.add_argument("--runs", required=True, type=Path, help="table of runs and their status, .csv")
    parser.add_argument("--results", required=True, type=Path, help="folder with diagnostics/, calibration/")
    parser.add_argument("--output", required=True, type=Path, help="folder to write the tables into")
    arguments = parser.parse_args(argv)
    runs = read_runs(arguments.runs)
    summary.write_statistics_tables(
        load_metrics(arguments.metrics),
        read_diagnostics(arguments.results, runs),
        [(run, read_fits(arguments.results, run)) for run in succeeded(runs)],
        arguments.spec["metric"],
        arguments.spec["criterion"],
        arguments.output,
    )


if __name__ == "__main__":
    start(main)
