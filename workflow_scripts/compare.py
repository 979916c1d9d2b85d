"""Tell what changed between two results folders: configuration, code, runs, numbers, verdicts on claims."""

from workflow_scripts.entry import start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.reporting.compare import compare_folders


def main(argv: Sequence[str] | None = None) -> None:
    """Print the differences as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=Path, help="a results folder")
    parser.add_argument("second", type=Path, help="another one, made with something changed")
    arguments = parser.parse_args(argv)
    print(compare_folders(arguments.first, arguments.second))


if __name__ == "__main__":
    start(main)
