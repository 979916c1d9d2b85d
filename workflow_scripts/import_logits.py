"""Bring the logits of a model trained elsewhere into the form that trained runs have, checked."""

from workflow_scripts.entry import spec_argument, start

import argparse
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from focalcal.calibration.files.imports import Imported, import_logits, import_record
from focalcal.calibration.files.logits_io import from_arrays, write_logits
from focalcal.common.io import write_json
from focalcal.config.provenance import provenance
from focalcal.data.fetch import cache_folder
from focalcal.data.network_logits import network_arrays
from focalcal.data.networks import find_network


def main(argv: Sequence[str] | None = None) -> None:
    """Write the run's logits and its record."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(
        parser, "name, dataset, model, loss, seed; path and kind, or checksums of a published network"
    )
    parser.add_argument("--output", type=Path, required=True, help="logits to write, .npz")
    parser.add_argument("--record", type=Path, required=True, help="record to write, .json")
    arguments = parser.parse_args(argv)

    imported = _imported(arguments.spec)
    for warning in imported.warnings:
        logging.getLogger(__name__).warning("%s: %s", arguments.spec["name"], warning)
    write_logits(arguments.output, imported.logits)
    origin = provenance("workflow_scripts/import_logits.py")
    write_json(arguments.record, import_record(arguments.spec, imported, origin))


def _imported(spec: Mapping[str, Any]) -> Imported:
    """Return the logits of the user's own file or of a published network."""
    if "path" in spec:
        return import_logits(Path(spec["path"]), spec["kind"])
    arrays = network_arrays(find_network(spec["name"]), cache_folder())
    checksum = spec["checksums"]["test_logits.npy"].removeprefix("sha256:")
    return Imported(from_arrays(arrays, spec["name"]), checksum)


if __name__ == "__main__":
    start(main)
