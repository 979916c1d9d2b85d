"""Compare two models on the same samples, as they are and after calibration."""

import argparse
from pathlib import Path

from focalcal.commands.files import FORMATS, add_json, add_reading, answers_of, needing, show, tell

DESCRIPTION = (
    "Compare two models on the same labelled samples, as they are and after temperature scaling, with "
    "intervals. What remains after calibration is a difference between what the models know."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("first", type=Path, help=f"logits and labels of one model: {FORMATS}")
    parser.add_argument("second", type=Path, help="those of the other, of the same samples in the same order")
    add_reading(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print the scores of both models and their differences."""
    with needing("recommend"):
        from focalcal.calibration.files.imports import read_splits  # noqa: PLC0415
    from focalcal.reporting.comparison import compare, comparison_text  # noqa: PLC0415

    both = []
    for path in (arguments.first, arguments.second):
        read = read_splits([path], answers_of(arguments))
        tell((f"{path}: {note}" for note in read.notes), read.warnings)
        both.append(read.splits)
    names = (str(arguments.first), str(arguments.second))
    found = compare(both[0], both[1], names)
    show(comparison_text(found), found, as_json=arguments.json)
