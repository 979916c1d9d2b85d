"""The numbers that decide the papers' experimental statements, from the available runs."""

from workflow_scripts.entry import command, start

from pathlib import Path

from focalcal.common.checks import write_checks
from focalcal.reporting.claims import experiments
from focalcal.reporting.claims.ledger import load_claims, wanted_checks
from focalcal.reporting.records import published
from focalcal.reporting.records.sources import Sources


@command
def main(results: Path, output: Path) -> None:
    """Write one row per check, dataset and model of a results folder."""
    sources = Sources(results, {})
    checks = experiments.experiment_checks(
        wanted_checks(load_claims()),
        sources.runs,
        sources.metrics,
        sources.surfaces(),
        sources.histories(),
        published.measured_cells(),
    )
    write_checks(output, checks)


if __name__ == "__main__":
    start(main)
