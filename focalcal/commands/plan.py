"""Estimate what a configuration costs."""

import argparse
import subprocess
import sys
from pathlib import Path

from focalcal.common.errors import UserError

DESCRIPTION = "Print the trainings of a configuration and what they cost, without starting any."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("configfile", nargs="*", type=Path, help="overlays, as configs/smoke.yaml")


def run(arguments: argparse.Namespace) -> None:
    """Let the workflow of this folder print its plan."""
    if not Path("Snakefile").is_file():
        raise UserError(
            f"{str(Path.cwd())!r} has no Snakefile; allowed: the folder of the workflow; change to the clone"
        )
    from focalcal.config.yaml_files import check_yaml_files  # noqa: PLC0415

    check_yaml_files(["config.yaml", *arguments.configfile])
    overlays = ["--configfile", *map(str, arguments.configfile)] if arguments.configfile else []
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--quiet", "all"]
    finished = subprocess.run([*command, *overlays, "--", "plan"], check=False)
    if finished.returncode:
        raise UserError("the workflow could not make its plan; the reason is above")
