"""Draw what happens while the runs of one dataset and model are trained."""

from workflow_scripts.entry import start

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from focalcal.reporting.figures import snapshots as figures_snapshots
from focalcal.reporting.figures.style import house_style, save
from focalcal.reporting.figures.training import training
from focalcal.reporting.records.files import iterate_histories, read_record, read_runs


def main(argv: Sequence[str] | None = None) -> None:
    """Write both figures in each of the given formats."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", required=True, type=Path, help="table of runs and their status, .csv")
    parser.add_argument("--results", required=True, type=Path, help="folder with runs/")
    parser.add_argument("--place", required=True, help="which runs: DATASET/MODEL")
    parser.add_argument(
        "--output", required=True, type=Path, nargs="+", help="files of the dynamics by epoch"
    )
    parser.add_argument("--snapshots", required=True, type=Path, nargs="+", help="files of the reliability")
    arguments = parser.parse_args(argv)
    histories, snapshots = defaultdict(list), defaultdict(list)
    for trained, history in iterate_histories(arguments.results, read_runs(arguments.runs), arguments.place):
        histories[trained["loss"]].append(history)
        snapshots[trained["loss"]].append(read_record(arguments.results, trained)["snapshots"])
    with house_style():
        save(training(histories), arguments.output)
        save(figures_snapshots.snapshots(snapshots), arguments.snapshots)


if __name__ == "__main__":
    start(main)
