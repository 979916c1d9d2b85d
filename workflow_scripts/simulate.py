"""Calibrators where the truth is known."""

from workflow_scripts.entry import Spec, command, start

from pathlib import Path

from focalcal.calibration.simulation import divergences
from focalcal.common.csv_rows import write_rows


@command
def main(spec: Spec, table: Path, processes: str = "1") -> None:
    """Write the divergence from the truth by distortion, classes, samples and calibrator."""
    write_rows(table, divergences(spec, int(processes)))


if __name__ == "__main__":
    start(main)
