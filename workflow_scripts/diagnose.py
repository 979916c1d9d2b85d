"""Reduce one run's test predictions to what figures and sample statistics need."""

from workflow_scripts.entry import spec_argument, start

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from focalcal.calibration import logits_io
from focalcal.common.io import write_json
from focalcal.reporting.records import diagnostics


def main(argv: Sequence[str] | None = None) -> None:
    """Write one run's diagnostics."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "criterion, resamples")
    spec_argument(parser, "the spec of the calibration", "--calibration")
    parser.add_argument("--logits", required=True, type=Path, help="the run's logits, .npz")
    parser.add_argument("--fits", required=True, type=Path, help="the run's calibration fits, .json")
    parser.add_argument("--output", required=True, type=Path, help="diagnostics to write, .json")
    arguments = parser.parse_args(argv)
    fits = json.loads(arguments.fits.read_text("utf-8"))
    logits = logits_io.load(arguments.logits)
    settings = {key: arguments.spec[key] for key in ("criterion", "resamples")}
    write_json(
        arguments.output, diagnostics.diagnose(logits, fits, calibration=arguments.calibration, **settings)
    )


if __name__ == "__main__":
    start(main)
