"""Write the linear-model experiment: cross-entropy and focal loss on a two-weight logistic regression."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence

from focalcal.common.io import write_text
from focalcal.theory.linear_model_table import experiment_rows, history_rows, run_experiment
from focalcal.theory.settings import theory_settings
from focalcal.theory.tables import csv_text


def main(argv: Sequence[str] | None = None) -> None:
    """Write the final norms and mistakes of every model, and the norms during training."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "settings of the theory stage")
    parser.add_argument("--output", required=True, help="CSV: one row a dataset and loss")
    parser.add_argument("--history", required=True, help="CSV: norms by training step")
    arguments = parser.parse_args(argv)
    experiment = run_experiment(theory_settings(arguments.spec))
    write_text(arguments.output, csv_text(experiment_rows(experiment)))
    write_text(arguments.history, csv_text(history_rows(experiment)))


if __name__ == "__main__":
    start(main)
