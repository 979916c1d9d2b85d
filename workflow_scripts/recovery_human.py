"""Fetch or read the human label distributions of a dataset's test samples and check them."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.common.npz import write_npz
from focalcal.data.fetch import cache_folder
from focalcal.data.human_labels import obtain_human_labels
from focalcal.data.registry import DOWNLOAD, load_entry
from focalcal.recovery.human import read_distributions


def main(argv: Sequence[str] | None = None) -> None:
    """Write one dataset's human labels."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "base, source")
    parser.add_argument("--cache", type=Path, help="for downloads; default as for datasets")
    parser.add_argument("--output", required=True, type=Path, help="checked distributions to write, .npz")
    arguments = parser.parse_args(argv)
    base, source = arguments.spec["base"], arguments.spec["source"]
    if source == DOWNLOAD:
        cache = cache_folder(arguments.cache)
        probs = obtain_human_labels(base, load_entry(base), cache, read_distributions)
    else:
        probs = read_distributions(source)
    write_npz(arguments.output, {"probs": probs})


if __name__ == "__main__":
    start(main)
