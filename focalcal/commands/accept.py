"""Let finished results count although code or packages have changed."""

import argparse
from pathlib import Path

DESCRIPTION = (
    "List changes of code and packages since the results here were made. With --reason they are accepted: "
    "nothing is computed again for them, and tables and report say who accepted what. Accept only what you "
    "have reviewed and what changes no number."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("runs", nargs="*", metavar="RUN", help="as gauss-3/mlp/ce/seed1; default: all")
    parser.add_argument("--reason", help="why the change changes no number; without it nothing is accepted")
    parser.add_argument("--by", help="who has reviewed the change; default: your user name")
    parser.add_argument("--results", type=Path, default=Path("results"), help="default: results")


def run(arguments: argparse.Namespace) -> None:
    """Print what differs from finished results, and whether it was accepted."""
    from focalcal.reporting.records.accept import accept  # noqa: PLC0415

    print(accept(arguments.results, arguments.runs, arguments.reason, arguments.by))
