"""List SLURM jobs that outlived a killed Snakemake in this folder; wait for them or cancel them."""

from workflow_scripts.entry import start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.snakemake_shim import orphaned_jobs


def main(argv: Sequence[str] | None = None) -> None:
    """Print the jobs; with `--wait` or `--cancel` return when they are gone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path(), help="where Snakemake ran; default: here")
    parser.add_argument(
        "--interval", type=float, default=15.0, help="seconds between looks at the queue; default: 15"
    )
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--wait", action="store_true", help="wait until all have ended")
    choice.add_argument("--cancel", action="store_true", help="stop them; trainings write a checkpoint first")
    arguments = parser.parse_args(argv)

    found = orphaned_jobs.find(arguments.directory)
    for orphan in found:
        print(orphan)
    if arguments.cancel:
        orphaned_jobs.cancel(found)
    if arguments.cancel or arguments.wait:
        orphaned_jobs.wait(arguments.directory, arguments.interval)
        found = []
    if not found:
        folder = arguments.directory.resolve()
        print(f"No job of an earlier Snakemake in {folder} is left.")
        print("Next: add --unlock to its command, then start it as before.")


if __name__ == "__main__":
    start(main)
