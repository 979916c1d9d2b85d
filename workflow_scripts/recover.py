"""Recovered, calibrated and raw predictions of one dataset and model, compared with the posterior."""

from workflow_scripts.entry import Spec, command, start

from pathlib import Path

from focalcal.calibration.files.logits_io import read_logits
from focalcal.calibration.files.tidy import COLUMNS
from focalcal.common.csv_rows import write_rows
from focalcal.common.io import read_json, write_json
from focalcal.config.provenance import made_by
from focalcal.recovery.human import read_human_labels
from focalcal.recovery.recover import recover


@command
def main(
    spec: Spec,
    logits: list[Path],
    fits: list[Path],
    metrics: Path,
    record: Path,
    human: Path | None = None,
) -> None:
    """Write the recovery of runs from the logits and fits of each, and human labels of their test samples."""
    rows, records = [], []
    for run, logits_file, fits_file in zip(spec["runs"], logits, fits, strict=True):
        known = read_logits(logits_file)
        people = None
        if human is not None:
            people = read_human_labels(human, known.test.labels, known.test.logits.shape[1])
        result = recover(known, run, read_json(fits_file), spec["bins"], people)
        rows += result.rows
        records.append(result.record)
    write_rows(metrics, rows, COLUMNS)
    write_json(record, {"runs": records, **made_by(spec, "workflow_scripts/recover.py")})


if __name__ == "__main__":
    start(main)
