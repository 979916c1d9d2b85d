"""Calibrators of one run, fitted to few validation samples."""

from workflow_scripts.entry import Spec, command, start

from pathlib import Path

from focalcal.calibration.catalogue import declaring_files
from focalcal.calibration.files.logits_io import read_logits
from focalcal.calibration.sizes import scores_by_size, write_size_scores
from focalcal.config.provenance import made_by


@command
def main(spec: Spec, logits: Path, record: Path, scores: Path) -> None:
    """Write what was fitted, and scores by number of validation samples with their draws."""
    result = scores_by_size(read_logits(logits), spec)
    origin = made_by(spec, "workflow_scripts/validation_sizes.py", *declaring_files(spec["methods"]))
    write_size_scores(result, origin, record, scores)


if __name__ == "__main__":
    start(main)
