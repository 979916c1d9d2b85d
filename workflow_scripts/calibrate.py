"""Every calibration method of one run."""

from workflow_scripts.entry import Spec, command, start

from pathlib import Path

from focalcal.calibration.catalogue import declaring_files
from focalcal.calibration.files.logits_io import read_logits
from focalcal.calibration.run import calibrate, write_calibration
from focalcal.config.provenance import made_by


@command
def main(spec: Spec, logits: Path, metrics: Path, fits: Path, surfaces: Path, diagnostics: Path) -> None:
    """Write the scores, fitted parameters, search surfaces and test diagnostics of one run's logits."""
    result = calibrate(read_logits(logits), spec)
    origin = made_by(spec, "workflow_scripts/calibrate.py", *declaring_files(spec["methods"]))
    write_calibration(result, origin, metrics, fits, surfaces, diagnostics)


if __name__ == "__main__":
    start(main)
