"""Fit every calibration method of one run; write its metrics, fits, search surfaces and diagnostics."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.calibration.catalogue import declaring_files
from focalcal.calibration.files.logits_io import read_logits
from focalcal.calibration.run import calibrate, write_calibration
from focalcal.config.provenance import made_by


def main(argv: Sequence[str] | None = None) -> None:
    """Write the four files of one run's calibration."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(
        parser,
        "run {dataset, model, loss, seed, gamma}, methods, criteria, gammas, "
        "temperatures {start, stop, step}, bins, adaece, resamples",
    )
    parser.add_argument("--logits", type=Path, required=True, help="the run's logits, .npz")
    parser.add_argument("--metrics", type=Path, required=True, help="tidy metrics to write, .csv")
    parser.add_argument("--fits", type=Path, required=True, help="fitted parameters to write, .json")
    parser.add_argument("--surfaces", type=Path, required=True, help="validation surfaces to write, .npz")
    parser.add_argument("--diagnostics", type=Path, required=True, help="test diagnostics to write, .json")
    arguments = parser.parse_args(argv)

    result = calibrate(read_logits(arguments.logits), arguments.spec)
    origin = made_by(
        arguments.spec, "workflow_scripts/calibrate.py", *declaring_files(arguments.spec["methods"])
    )
    paths = (arguments.metrics, arguments.fits, arguments.surfaces, arguments.diagnostics)
    write_calibration(result, origin, *paths)


if __name__ == "__main__":
    start(main)
