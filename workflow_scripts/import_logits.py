"""Bring the logits of a model trained elsewhere into the form that trained runs have, checked."""

from workflow_scripts.entry import spec_argument, start

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from focalcal.calibration import imports, logits_io
from focalcal.common.io import write_json
from focalcal.workflow.provenance import provenance


def main(argv: Sequence[str] | None = None) -> None:
    """Write the run's logits and its record."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "name, path, dataset, model, loss, seed, kind")
    parser.add_argument("--output", type=Path, required=True, help="logits to write, .npz")
    parser.add_argument("--record", type=Path, required=True, help="record to write, .json")
    arguments = parser.parse_args(argv)

    imported = imports.read(Path(arguments.spec["path"]), arguments.spec["kind"])
    for warning in imported.warnings:
        logging.getLogger(__name__).warning("%s: %s", arguments.spec["name"], warning)
    logits_io.write(arguments.output, imported.logits)
    origin = provenance("workflow_scripts/import_logits.py", ["numpy", "pandas", "pyarrow", "safetensors"])
    write_json(arguments.record, imports.record(arguments.spec, imported, origin))


if __name__ == "__main__":
    start(main)
