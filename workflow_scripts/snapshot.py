"""Copy what matters of a finished results folder to a small folder that can be kept under version control."""

from workflow_scripts.entry import start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.reporting.snapshot import write_snapshot


def main(argv: Sequence[str] | None = None) -> None:
    """Write the snapshot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, help="a results folder of a finished workflow")
    parser.add_argument("target", type=Path, help="folder to make; it must not exist")
    parser.add_argument("--without-runs", action="store_true", help="leave out what is about single runs")
    arguments = parser.parse_args(argv)
    write_snapshot(arguments.results, arguments.target, runs=not arguments.without_runs)


if __name__ == "__main__":
    start(main)
