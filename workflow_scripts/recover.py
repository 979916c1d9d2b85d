"""Compare recovered, calibrated and raw predictions of one dataset and model with the posterior."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.calibration.files.logits_io import read_logits
from focalcal.calibration.files.tidy import COLUMNS
from focalcal.common.csv_rows import write_rows
from focalcal.common.io import read_json, write_json
from focalcal.config.provenance import made_by
from focalcal.recovery.human import read_human_labels
from focalcal.recovery.recover import recover


def main(argv: Sequence[str] | None = None) -> None:
    """Write the recovery metrics and records of these runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "runs, bins")
    parser.add_argument("--logits", nargs="+", required=True, type=Path, help="the logits of each run, .npz")
    parser.add_argument(
        "--fits", nargs="+", required=True, type=Path, help="the calibration fits of each run, .json"
    )
    parser.add_argument("--human", nargs="?", type=Path, help="human labels of the test samples, .npz")
    parser.add_argument("--metrics", required=True, type=Path, help="tidy metrics to write, .csv")
    parser.add_argument("--record", required=True, type=Path, help="all of the recovery to write, .json")
    arguments = parser.parse_args(argv)
    rows, records = [], []
    for run, logits_file, fits_file in zip(
        arguments.spec["runs"], arguments.logits, arguments.fits, strict=True
    ):
        logits = read_logits(logits_file)
        human = None
        if arguments.human is not None:
            human = read_human_labels(arguments.human, logits.test.labels, logits.test.logits.shape[1])
        result = recover(logits, run, read_json(fits_file), arguments.spec["bins"], human)
        rows += result.rows
        records.append(result.record)
    write_rows(arguments.metrics, rows, COLUMNS)
    origin = made_by(arguments.spec, "workflow_scripts/recover.py")
    write_json(arguments.record, {"runs": records, **origin})


if __name__ == "__main__":
    start(main)
