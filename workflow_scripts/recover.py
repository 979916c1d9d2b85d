"""Compare recovered, calibrated and raw predictions of one run with the posterior, true or human."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.calibration.logits_io import read_logits
from focalcal.calibration.tidy import COLUMNS
from focalcal.common.csv_rows import write_rows
from focalcal.common.io import read_json, write_json
from focalcal.recovery.human import read_human_labels
from focalcal.recovery.recover import recover
from focalcal.workflow.provenance import made_by


def main(argv: Sequence[str] | None = None) -> None:
    """Write one run's recovery metrics and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "run, bins")
    parser.add_argument("--logits", required=True, type=Path, help="the run's logits, .npz")
    parser.add_argument("--fits", required=True, type=Path, help="the run's calibration fits, .json")
    parser.add_argument("--human", nargs="?", type=Path, help="human labels of the test samples, .npz")
    parser.add_argument("--metrics", required=True, type=Path, help="tidy metrics to write, .csv")
    parser.add_argument(
        "--record", required=True, type=Path, help="all of the run's recovery to write, .json"
    )
    arguments = parser.parse_args(argv)
    logits = read_logits(arguments.logits)
    human = None
    if arguments.human is not None:
        human = read_human_labels(arguments.human, logits.test.labels, logits.test.logits.shape[1])
    fits = read_json(arguments.fits)
    result = recover(logits, arguments.spec["run"], fits, arguments.spec["bins"], human)
    write_rows(arguments.metrics, result.rows, COLUMNS)
    origin = made_by(arguments.spec, "workflow_scripts/recover.py")
    write_json(arguments.record, {**result.record, **origin})


if __name__ == "__main__":
    start(main)
