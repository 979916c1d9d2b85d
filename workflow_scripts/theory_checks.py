"""Write the numbers that decide the papers' theoretical statements, and M20's linear-model experiment."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.common.checks import write_checks
from focalcal.common.csv_rows import write_rows
from focalcal.theory.checks_c21 import c21_checks
from focalcal.theory.checks_k24 import k24_checks
from focalcal.theory.checks_m20 import linear_model_checks, m20_checks
from focalcal.theory.linear_model import run_experiment
from focalcal.theory.settings import theory_settings


def main(argv: Sequence[str] | None = None) -> None:
    """Write the experiment's final and recorded norms, and one row per check."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "settings of the theory stage")
    parser.add_argument("--output", required=True, type=Path, help="folder for the tables")
    arguments = parser.parse_args(argv)
    rows, history = run_experiment(theory_settings(arguments.spec))
    write_rows(arguments.output / "linear_model.csv", rows)
    write_rows(arguments.output / "linear_model_history.csv", history)
    checks = [*k24_checks(), *m20_checks(), *linear_model_checks(rows), *c21_checks()]
    write_checks(arguments.output / "checks.csv", checks)


if __name__ == "__main__":
    start(main)
