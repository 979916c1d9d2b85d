"""Write the confidence thresholds of focal loss, its overconfident class counts, and gamma*(p0)."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence

from focalcal.common.io import write_text
from focalcal.theory.settings import theory_settings
from focalcal.theory.tables import csv_text
from focalcal.theory.thresholds_table import gamma_star_rows, overconfidence_rows, threshold_rows


def main(argv: Sequence[str] | None = None) -> None:
    """Write three tables: thresholds by gamma, gammas by class count, gamma* by p0."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "settings of the theory stage")
    parser.add_argument("--thresholds", required=True, help="CSV: tau_oc and tau_uc by gamma")
    parser.add_argument(
        "--overconfidence", required=True, help="CSV: largest overconfident gamma by class count"
    )
    parser.add_argument("--gamma-star", required=True, help="CSV: gamma* by p0")
    arguments = parser.parse_args(argv)
    settings = theory_settings(arguments.spec)
    write_text(arguments.thresholds, csv_text(threshold_rows(settings.gammas)))
    write_text(arguments.overconfidence, csv_text(overconfidence_rows()))
    write_text(arguments.gamma_star, csv_text(gamma_star_rows()))


if __name__ == "__main__":
    start(main)
