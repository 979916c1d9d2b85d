"""The claims ledger: every checkable statement of the papers with its verdict and evidence."""

from workflow_scripts.entry import command, start

from pathlib import Path

from focalcal.common.checks import write_checks
from focalcal.common.csv_rows import write_rows
from focalcal.reporting.claims.evidence import Evidence
from focalcal.reporting.claims.experiments import experiment_checks
from focalcal.reporting.claims.ledger import COLUMNS, judge, load_claims, wanted_checks
from focalcal.reporting.records.published import measured_cells
from focalcal.reporting.records.sources import Sources


@command
def main(results: Path, evidence: list[Path], checks: Path, table: Path) -> None:
    """Measure what claims state about the runs of a results folder, judge every claim, write the ledger."""
    claims, found = load_claims(), Sources(results, {})
    measured = experiment_checks(
        wanted_checks(claims),
        found.runs,
        found.metrics,
        found.surfaces(),
        found.histories(),
        measured_cells(),
        found.comparisons,
        found.test_split,
    )
    write_checks(checks, measured)
    write_rows(table, judge(claims, Evidence([*evidence, checks])), COLUMNS)


if __name__ == "__main__":
    start(main)
