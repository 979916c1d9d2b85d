"""Write the claims ledger: every checkable statement of the papers with its verdict and evidence."""

from workflow_scripts.entry import start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.common.io import write_text
from focalcal.reporting.claims.ledger import csv_ledger, judge, load_claims, markdown_ledger


def main(argv: Sequence[str] | None = None) -> None:
    """Judge every claim on the evidence files found under the root, and write the ledger twice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--root", default=".", help="folder that evidence paths (results/...) are relative to"
    )
    parser.add_argument("--table", required=True, help="CSV: the ledger")
    parser.add_argument("--readable", required=True, help="Markdown: the same for people")
    arguments = parser.parse_args(argv)
    rows = judge(load_claims(), Path(arguments.root))
    write_text(arguments.table, csv_ledger(rows))
    write_text(arguments.readable, markdown_ledger(rows))


if __name__ == "__main__":
    start(main)
