"""Choose the calibrator to use for one run and save it, with what led to the choice."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.calibration.catalogue import declaring_files
from focalcal.calibration.files.logits_io import read_logits
from focalcal.calibration.recommend import recommend
from focalcal.calibration.run import read_saved_fits
from focalcal.calibration.saved import write_record
from focalcal.config.provenance import made_by


def main(argv: Sequence[str] | None = None) -> None:
    """Write the recommended calibrator of one run."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(
        parser,
        "run {dataset, model, loss, seed, gamma}, methods, gammas, temperatures {start, stop, step}, bins, "
        "adaece",
    )
    parser.add_argument("--logits", type=Path, required=True, help="the run's logits, .npz")
    parser.add_argument("--fits", type=Path, required=True, help="the run's calibration fits, .json")
    parser.add_argument("--metrics", type=Path, required=True, help="the run's calibration metrics, .csv")
    parser.add_argument("--diagnostics", type=Path, required=True, help="the run's diagnostics, .json")
    parser.add_argument("--output", type=Path, required=True, help="recommended calibrator to write, .json")
    arguments = parser.parse_args(argv)

    known = read_saved_fits(arguments.fits, arguments.metrics, arguments.diagnostics)
    found = recommend(read_logits(arguments.logits), arguments.spec, known)
    origin = made_by(
        arguments.spec, "workflow_scripts/recommend.py", *declaring_files(arguments.spec["methods"])
    )
    write_record(found.record, arguments.output, {"recommendation": found.details, **origin})


if __name__ == "__main__":
    start(main)
