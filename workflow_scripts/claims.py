"""Write the claims ledger: every checkable statement of the papers with its verdict and evidence."""

from workflow_scripts.entry import start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.common.csv_rows import write_rows
from focalcal.common.io import write_text
from focalcal.reporting.claims.evidence import Evidence
from focalcal.reporting.claims.ledger import COLUMNS, judge, load_claims, markdown_ledger


def main(argv: Sequence[str] | None = None) -> None:
    """Judge every claim on the evidence files, and write the ledger as CSV and as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--evidence", required=True, nargs="+", type=Path, help="files that claims may read, .../results/..."
    )
    parser.add_argument("--table", required=True, help="CSV: the ledger")
    parser.add_argument("--readable", required=True, help="Markdown: the same for people")
    arguments = parser.parse_args(argv)
    rows = judge(load_claims(), Evidence(arguments.evidence))
    write_rows(arguments.table, rows, COLUMNS)
    write_text(arguments.readable, markdown_ledger(rows))


if __name__ == "__main__":
    start(main)
