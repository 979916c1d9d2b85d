"""Run jobs in forks of this process, which has their libraries loaded, until standard input ends."""

from workflow_scripts.entry import run

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.workflow.warm_server import serve


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("listener", type=int, help="file descriptor of the socket")
    parser.add_argument("folder", type=Path, help="folder of the socket, which is removed at the end")
    arguments = parser.parse_args(argv)
    serve(arguments.listener, arguments.folder, run)


if __name__ == "__main__":
    main()
