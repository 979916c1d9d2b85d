"""What every entry point does the same way: quick start and end, exit codes, errors, log lines, checksums."""

import argparse
import gc
import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from focalcal.common.checksums import recording
from focalcal.common.errors import UserError, exit_code

# Libraries make hundreds of thousands of objects that stay. Python would look for garbage among them at every
# 700th: a quarter of the time that torch takes to load.
gc.set_threshold(100_000, 10, 10)


def start(main: Callable[[Sequence[str] | None], None]) -> None:
    """Run `main` on the command line's arguments and end the process with its exit code."""
    code = run(main)
    if sys.getprofile() or sys.gettrace():  # these write what they found at an ordinary end
        sys.exit(code)
    sys.stdout.flush()
    sys.stderr.flush()
    # All files are closed. Taking torch down object by object would cost another third of a second.
    os._exit(code)


def spec_argument(parser: argparse.ArgumentParser, content: str, name: str = "--spec") -> None:
    """Add the argument by which a rule passes settings: a JSON object, or `-` to read it from standard input.

    Linux takes no argument of more than 128 KiB, and a configuration of a thousand runs is longer.
    """

    def parse(argument: str) -> dict[str, Any]:
        text = sys.stdin.read() if argument == "-" else argument
        try:
            settings = json.loads(text)
        except json.JSONDecodeError as error:
            raise UserError(f"{name} is not JSON: {error}; allowed: a JSON object with {content}") from None
        if not isinstance(settings, dict):
            raise UserError(f"{name} is not a JSON object; allowed: a JSON object with {content}")
        return settings

    parser.add_argument(
        name, required=True, type=parse, help=f"JSON object, or - for standard input: {content}"
    )


def run(main: Callable[[Sequence[str] | None], None], argv: Sequence[str] | None = None) -> int:
    """Return the exit code of `main(argv)`: 0, or 2 after one line on standard error for a user's mistake."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr
    )
    # Matplotlib's PDF writer lets fontTools report each glyph.
    logging.getLogger("fontTools").setLevel(logging.WARNING)
    with recording(Path(main.__code__.co_filename).stem):
        return exit_code(lambda: main(argv))
