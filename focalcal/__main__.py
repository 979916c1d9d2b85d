"""Calibrate a model from files of its logits, without a workflow; COMMAND --help explains each."""

import argparse
import importlib
import sys
from collections.abc import Sequence

import focalcal
from focalcal.common.errors import exit_code

COMMANDS = ("recommend", "apply", "compare", "export", "plan", "verify", "accept")
"""Each is a module of `focalcal.commands`."""


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit code of a command: 0, or 2 after one line on standard error for a user's mistake."""
    arguments = _parser().parse_args(argv)
    return exit_code(lambda: arguments.run(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="focalcal", description=__doc__)
    parser.add_argument("--version", action="version", version=focalcal.__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in COMMANDS:
        # Commands import what they need when they run, so that --help and mistakes in arguments are quick.
        module = importlib.import_module(f"focalcal.commands.{name}")
        summary = str(module.__doc__).strip().rstrip(".")
        command = commands.add_parser(
            name, help=summary[0].lower() + summary[1:], description=module.DESCRIPTION
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
