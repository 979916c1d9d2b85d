"""Fetch one dataset and write its prepared form and record."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.common.io import write_json
from focalcal.data import prepared
from focalcal.data.fetch import cache_folder
from focalcal.data.prepare import dataset_record, prepare_dataset


def main(argv: Sequence[str] | None = None) -> None:
    """Write the prepared dataset and its record."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "name, entry, parameters")
    parser.add_argument(
        "--cache", type=Path, help="for downloads; default $FOCALCAL_CACHE or ~/.cache/focalcal"
    )
    parser.add_argument("--output", type=Path, required=True, help="prepared dataset, .npz")
    parser.add_argument("--record", type=Path, required=True, help="its record, .json")
    arguments = parser.parse_args(argv)

    preparation = prepare_dataset(arguments.spec, cache_folder(arguments.cache))
    prepared.write_dataset(arguments.output, preparation.data)
    write_json(arguments.record, dataset_record(arguments.spec, preparation, arguments.output))


if __name__ == "__main__":
    start(main)
