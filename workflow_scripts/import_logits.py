"""The logits of a model trained elsewhere in the form that trained runs have, checked."""

from workflow_scripts.entry import Spec, command, start

import hashlib
import json
import logging
from pathlib import Path

from focalcal.calibration.files.imports import Imported, import_logits, import_record, in_halves
from focalcal.calibration.files.logits_io import from_arrays, write_logits
from focalcal.common.io import write_json
from focalcal.config.provenance import provenance
from focalcal.data.fetch import cache_folder
from focalcal.data.network_logits import network_arrays
from focalcal.data.networks import HALVES, networks_of


@command
def main(spec: Spec, output: Path, record: Path) -> None:
    """Write the run's logits and its record."""
    imported = _imported(spec)
    for warning in imported.warnings:
        logging.getLogger(__name__).warning("%s: %s", spec["name"], warning)
    write_logits(output, imported.logits)
    write_json(record, import_record(spec, imported, provenance("workflow_scripts/import_logits.py")))


def _imported(spec: Spec) -> Imported:
    """Return the logits of the user's own file or of a published network."""
    halves, swapped = spec["split"] == HALVES, spec.get("swapped", False)
    if "path" in spec:
        return import_logits(Path(spec["path"]), spec["kind"], halves=halves, swapped=swapped)
    (network,) = networks_of(spec["name"])
    arrays = network_arrays(network, cache_folder())
    if halves:
        arrays = in_halves(arrays, network.name, swapped=swapped)
    checksum = hashlib.sha256(json.dumps(spec["checksums"], sort_keys=True).encode()).hexdigest()
    return Imported(from_arrays(arrays, network.name), checksum)


if __name__ == "__main__":
    start(main)
