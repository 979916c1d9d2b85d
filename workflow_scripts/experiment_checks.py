"""Compute the numbers that decide the papers' experimental statements from the available runs."""

from workflow_scripts.entry import start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.common.checks import write_checks
from focalcal.reporting.claims import experiments
from focalcal.reporting.records import published
from focalcal.reporting.records.files import iterate_histories, iterate_surfaces, read_runs
from focalcal.reporting.records.measurements import load_metrics


def main(argv: Sequence[str] | None = None) -> None:
    """Write one row per check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metrics", required=True, type=Path, help="tidy metrics, .csv")
    parser.add_argument("--runs", required=True, type=Path, help="table of runs and their status, .csv")
    parser.add_argument("--results", required=True, type=Path, help="folder with runs/, calibration/")
    parser.add_argument("--output", required=True, type=Path, help="table of checks to write, .csv")
    arguments = parser.parse_args(argv)
    runs = read_runs(arguments.runs)
    checks = experiments.experiment_checks(
        load_metrics(arguments.metrics),
        iterate_surfaces(arguments.results, runs),
        iterate_histories(arguments.results, runs),
        published.unique_cells(published.load_results()),
    )
    write_checks(arguments.output, checks)


if __name__ == "__main__":
    start(main)
