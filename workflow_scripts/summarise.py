"""Write the summary over seeds as CSV, as a Markdown table and as a figure."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from focalcal.reporting import summary
from focalcal.workflow.io import atomic_output
from workflow_scripts.entry import run


def main(argv: Sequence[str] | None = None) -> None:
    """Write the table and the figure of one tidy metrics file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json.loads, help="JSON: title")
    parser.add_argument("--metrics", required=True, type=Path, help="tidy metrics, .csv")
    parser.add_argument("--csv", required=True, type=Path, help="summary to write, .csv")
    parser.add_argument("--markdown", required=True, type=Path, help="readable table to write, .md")
    parser.add_argument("--figures", required=True, type=Path, nargs="+", help="figure files to write")
    arguments = parser.parse_args(argv)
    metrics = pd.read_csv(arguments.metrics)
    table = summary.summarise(metrics)
    with atomic_output(arguments.csv) as partial:
        table.to_csv(partial, index=False, lineterminator="\n")
    summary.write_markdown(table, arguments.markdown)
    summary.draw(metrics, arguments.spec["title"], arguments.figures)


if __name__ == "__main__":
    sys.exit(run(main))
