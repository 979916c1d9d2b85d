"""Draw the reliability diagrams of one dataset and model."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.reporting.figures.reliability import reliability
from focalcal.reporting.figures.style import house_style, save
from focalcal.reporting.records.files import read_diagnostics, read_runs


def main(argv: Sequence[str] | None = None) -> None:
    """Write the figure in each of the given formats."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "reliability_methods")
    parser.add_argument("--runs", required=True, type=Path, help="table of runs and their status, .csv")
    parser.add_argument("--results", required=True, type=Path, help="folder with diagnostics/")
    parser.add_argument("--place", required=True, help="which runs: DATASET/MODEL")
    parser.add_argument("--output", required=True, type=Path, nargs="+", help="figure files to write")
    arguments = parser.parse_args(argv)
    diagnostics = read_diagnostics(arguments.results, read_runs(arguments.runs), arguments.place)
    with house_style():
        save(reliability(diagnostics, arguments.spec["reliability_methods"]), arguments.output)


if __name__ == "__main__":
    start(main)
