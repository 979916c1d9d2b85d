"""The claims ledger: every checkable statement of the papers with its verdict and evidence."""

from workflow_scripts.entry import command, start

from pathlib import Path

from focalcal.common.csv_rows import write_rows
from focalcal.common.io import write_text
from focalcal.reporting.claims.evidence import Evidence
from focalcal.reporting.claims.ledger import COLUMNS, judge, load_claims, markdown_ledger


@command
def main(evidence: list[Path], table: Path, readable: Path) -> None:
    """Judge every claim on files below results/, and write the ledger as CSV and as Markdown."""
    rows = judge(load_claims(), Evidence(evidence))
    write_rows(table, rows, COLUMNS)
    write_text(readable, markdown_ledger(rows))


if __name__ == "__main__":
    start(main)
