"""Fit every calibration method of one run and write its metrics, fits and search surfaces."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.calibration.catalogue import declaring_files
from focalcal.calibration.logits_io import read_logits
from focalcal.calibration.run import calibrate, write_calibration
from focalcal.workflow.provenance import made_by


def main(argv: Sequence[str] | None = None) -> None:
    """Write the three files of one run's calibration."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(
        parser,
        "run {dataset, model, loss, seed, gamma}, methods, criteria, gammas, "
        "temperatures {start, stop, step}, bins, adaece",
    )
    parser.add_argument("--logits", type=Path, required=True, help="the run's logits, .npz")
    parser.add_argument("--metrics", type=Path, required=True, help="tidy metrics to write, .csv")
    parser.add_argument("--fits", type=Path, required=True, help="fitted parameters to write, .json")
    parser.add_argument("--surfaces", type=Path, required=True, help="validation surfaces to write, .npz")
    arguments = parser.parse_args(argv)

    result = calibrate(read_logits(arguments.logits), arguments.spec)
    origin = made_by(
        arguments.spec, "workflow_scripts/calibrate.py", *declaring_files(arguments.spec["methods"])
    )
    write_calibration(result, origin, arguments.metrics, arguments.fits, arguments.surfaces)


if __name__ == "__main__":
    start(main)
