"""Reduce one run's test predictions to what figures and sample statistics need."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.calibration.logits_io import read_logits
from focalcal.common.io import read_json, write_json
from focalcal.reporting.records.diagnostics import summarise_run


def main(argv: Sequence[str] | None = None) -> None:
    """Write one run's diagnostics."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "criterion, resamples")
    parser.add_argument("--logits", required=True, type=Path, help="the run's logits, .npz")
    parser.add_argument("--fits", required=True, type=Path, help="the run's calibration fits, .json")
    parser.add_argument("--output", required=True, type=Path, help="diagnostics to write, .json")
    arguments = parser.parse_args(argv)
    fits = read_json(arguments.fits)
    logits = read_logits(arguments.logits)
    settings = {key: arguments.spec[key] for key in ("criterion", "resamples")}
    write_json(arguments.output, summarise_run(logits, fits, **settings))


if __name__ == "__main__":
    start(main)
