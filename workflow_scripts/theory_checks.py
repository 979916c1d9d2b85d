"""The numbers that decide the papers' theoretical statements, and M20's linear-model experiment."""

from workflow_scripts.entry import Spec, command, start

from pathlib import Path

from focalcal.common.checks import write_checks
from focalcal.common.csv_rows import write_rows
from focalcal.theory.checks_c21 import c21_checks
from focalcal.theory.checks_k24 import k24_checks
from focalcal.theory.checks_later import later_checks
from focalcal.theory.checks_m20 import linear_model_checks, m20_checks
from focalcal.theory.linear_model import run_experiment
from focalcal.theory.settings import theory_settings


@command
def main(spec: Spec, output: Path) -> None:
    """Write the experiment's final and recorded norms, and one row per check, into a folder."""
    rows, history = run_experiment(theory_settings(spec))
    write_rows(output / "linear_model.csv", rows)
    write_rows(output / "linear_model_history.csv", history)
    checks = [*k24_checks(), *m20_checks(), *linear_model_checks(rows), *c21_checks(), *later_checks()]
    write_checks(output / "checks.csv", checks)


if __name__ == "__main__":
    start(main)
