"""Write the score tables, in the papers' layouts and our own, as CSV, Markdown and LaTeX."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.reporting.records.measurements import load_metrics
from focalcal.reporting.tables import summary


def main(argv: Sequence[str] | None = None) -> None:
    """Write summary.csv and one file a table and spelling."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "metric, criterion")
    parser.add_argument("--metrics", required=True, type=Path, help="tidy metrics, .csv")
    parser.add_argument("--output", required=True, type=Path, help="folder to write the tables into")
    arguments = parser.parse_args(argv)
    metrics = load_metrics(arguments.metrics)
    summary.write_summary(metrics, arguments.output / "summary.csv")
    summary.write_score_tables(
        metrics, arguments.spec["metric"], arguments.spec["criterion"], arguments.output
    )


if __name__ == "__main__":
    start(main)
