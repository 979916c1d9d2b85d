"""The exact numbers of the theory: tables, and the proof of the temperature bounds."""

from workflow_scripts.entry import Spec, command, start

from pathlib import Path

from focalcal.common.csv_rows import write_rows
from focalcal.common.io import write_json
from focalcal.theory.certificate import certificate
from focalcal.theory.settings import theory_settings
from focalcal.theory.tables import bounds_summary, tables


@command
def main(spec: Spec, output: Path) -> None:
    """Write one CSV per table, the summary of the bounds and their certificate, into a folder."""
    settings = theory_settings(spec)
    for name, rows in tables(settings).items():
        write_rows(output / f"{name}.csv", rows)
    write_json(output / "bounds.json", bounds_summary(settings.scanned_gammas, settings.max_logit))
    write_json(output / "certificate.json", certificate(settings.certified_gammas))


if __name__ == "__main__":
    start(main)
