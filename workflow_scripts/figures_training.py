"""Draw the training dynamics of one dataset and model."""

from workflow_scripts.entry import start

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from focalcal.reporting.figure_parts import house_style, save
from focalcal.reporting.figures_training import training
from focalcal.reporting.records import iterate_histories, read_runs


def main(argv: Sequence[str] | None = None) -> None:
    """Write the figure in each of the given formats."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", required=True, type=Path, help="table of runs and their status, .csv")
    parser.add_argument("--results", required=True, type=Path, help="folder with runs/")
    parser.add_argument("--place", required=True, help="which runs: DATASET/MODEL")
    parser.add_argument("--output", required=True, type=Path, nargs="+", help="figure files to write")
    arguments = parser.parse_args(argv)
    histories = defaultdict(list)
    for trained, history in iterate_histories(arguments.results, read_runs(arguments.runs), arguments.place):
        histories[trained["loss"]].append(history)
    with house_style():
        save(training(histories), arguments.output)


if __name__ == "__main__":
    start(main)
