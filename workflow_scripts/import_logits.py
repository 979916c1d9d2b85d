"""Bring the logits of a model trained elsewhere into the form that trained runs have, checked."""

from workflow_scripts.entry import spec_argument, start

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from focalcal.calibration.imports import import_logits, import_record
from focalcal.calibration.logits_io import write_logits
from focalcal.common.io import write_json
from focalcal.workflow.provenance import provenance


def main(argv: Sequence[str] | None = None) -> None:
    """Write the run's logits and its record."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "name, path, dataset, model, loss, seed, kind")
    parser.add_argument("--output", type=Path, required=True, help="logits to write, .npz")
    parser.add_argument("--record", type=Path, required=True, help="record to write, .json")
    arguments = parser.parse_args(argv)

    imported = import_logits(Path(arguments.spec["path"]), arguments.spec["kind"])
    for warning in imported.warnings:
        logging.getLogger(__name__).warning("%s: %s", arguments.spec["name"], warning)
    write_logits(arguments.output, imported.logits)
    origin = provenance("workflow_scripts/import_logits.py", ["numpy", "pandas", "pyarrow", "safetensors"])
    write_json(arguments.record, import_record(arguments.spec, imported, origin))


if __name__ == "__main__":
    start(main)
