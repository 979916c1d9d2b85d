"""Compute the numbers that decide the papers' experimental statements from the available runs."""

from workflow_scripts.entry import start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.common.checks import write_checks
from focalcal.reporting.claims import experiments
from focalcal.reporting.claims.ledger import load_claims, wanted_checks
from focalcal.reporting.records import published
from focalcal.reporting.records.sources import Sources


def main(argv: Sequence[str] | None = None) -> None:
    """Write one row per check, dataset and model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--results", required=True, type=Path, help="folder with tables/, runs/, calibration/"
    )
    parser.add_argument("--output", required=True, type=Path, help="table of checks to write, .csv")
    arguments = parser.parse_args(argv)
    sources = Sources(arguments.results, {})
    checks = experiments.experiment_checks(
        wanted_checks(load_claims()),
        sources.runs,
        sources.metrics,
        sources.surfaces(),
        sources.histories(),
        published.measured_cells(),
    )
    write_checks(arguments.output, checks)


if __name__ == "__main__":
    start(main)
