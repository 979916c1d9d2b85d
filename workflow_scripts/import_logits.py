"""The logits of a model trained elsewhere in the form that trained runs have, checked."""

from workflow_scripts.entry import command, start

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from focalcal.calibration.files.imports import Imported, import_logits, import_record
from focalcal.calibration.files.logits_io import from_arrays, write_logits
from focalcal.common.io import write_json
from focalcal.config.provenance import provenance
from focalcal.data.fetch import cache_folder
from focalcal.data.network_logits import network_arrays
from focalcal.data.networks import find_network


@command
def main(spec: dict[str, Any], output: Path, record: Path) -> None:
    """Write the run's logits and its record."""
    imported = _imported(spec)
    for warning in imported.warnings:
        logging.getLogger(__name__).warning("%s: %s", spec["name"], warning)
    write_logits(output, imported.logits)
    write_json(record, import_record(spec, imported, provenance("workflow_scripts/import_logits.py")))


def _imported(spec: Mapping[str, Any]) -> Imported:
    """Return the logits of the user's own file or of a published network."""
    if "path" in spec:
        return import_logits(Path(spec["path"]), spec["kind"])
    arrays = network_arrays(find_network(spec["name"]), cache_folder())
    checksum = spec["checksums"]["test_logits.npy"].removeprefix("sha256:")
    return Imported(from_arrays(arrays, spec["name"]), checksum)


if __name__ == "__main__":
    start(main)
