"""Compare recovered, calibrated and raw predictions of one run with the true posterior where it is known."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from focalcal.calibration import engine, logits_io, recovery
from focalcal.workflow.io import write_text
from workflow_scripts.entry import run


def main(argv: Sequence[str] | None = None) -> None:
    """Write one run's recovery metrics."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json.loads, help="JSON: run, bins")
    parser.add_argument("--logits", required=True, type=Path, help="the run's logits, .npz")
    parser.add_argument("--fits", required=True, type=Path, help="the run's calibration fits, .json")
    parser.add_argument("--metrics", required=True, type=Path, help="tidy metrics to write, .csv")
    arguments = parser.parse_args(argv)
    fits = json.loads(arguments.fits.read_text("utf-8"))
    rows = recovery.recovery_rows(logits_io.load(arguments.logits), fits, arguments.spec["bins"])
    write_text(arguments.metrics, engine.as_csv(list(rows)))


if __name__ == "__main__":
    sys.exit(run(main))
