"""Draw the figures of the recovery stage, each as PNG and PDF."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.reporting.figures import recovery_draw
from focalcal.reporting.records.recovery import read_settings


def main(argv: Sequence[str] | None = None) -> None:
    """Draw every figure that the spec names."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "runs (dataset/model: loss: seeds), figures")
    parser.add_argument("--results", required=True, type=Path, help="folder with runs/, data/ and recovery/")
    parser.add_argument("--output", required=True, type=Path, help="folder to draw into")
    arguments = parser.parse_args(argv)
    settings = read_settings(arguments.results, arguments.spec["runs"])
    recovery_draw.draw(arguments.spec["figures"], settings, arguments.results, arguments.output)


if __name__ == "__main__":
    start(main)
