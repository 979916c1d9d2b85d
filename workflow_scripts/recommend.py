"""The calibrator to use for one run, saved with what led to the choice."""

from workflow_scripts.entry import Spec, command, start

from pathlib import Path

from focalcal.calibration.catalogue import declaring_files
from focalcal.calibration.files.logits_io import read_logits
from focalcal.calibration.recommend import recommend
from focalcal.calibration.run import read_saved_fits
from focalcal.calibration.saved import write_record
from focalcal.config.provenance import made_by


@command
def main(spec: Spec, logits: Path, fits: Path, metrics: Path, diagnostics: Path, output: Path) -> None:
    """Write the recommended calibrator of one run, chosen from its logits and what `calibrate` wrote."""
    found = recommend(read_logits(logits), spec, read_saved_fits(fits, metrics, diagnostics))
    origin = made_by(spec, "workflow_scripts/recommend.py", *declaring_files(spec["methods"]))
    write_record(found.record, output, {"recommendation": found.details, **origin})


if __name__ == "__main__":
    start(main)
