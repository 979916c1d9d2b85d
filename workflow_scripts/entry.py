"""What every entry point does the same way: arguments, quick start and end, errors, log lines, checksums."""

import argparse
import functools
import gc
import inspect
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

Spec = dict[str, Any]
"""The settings that a rule passes: all that determines what a job makes, besides input files and code."""


def command(function: Callable[..., None]) -> Callable[[Sequence[str] | None], None]:
    """Return `function` as a function of the command line: its parameters are the arguments.

    A spec is a JSON object, or `-` to read it from standard input: Linux takes no argument of more than
    128 KiB, and the settings of a thousand runs are longer.
    """
    parser = argparse.ArgumentParser(description=function.__doc__)
    for name, parameter in inspect.signature(function).parameters.items():
        required = parameter.default is parameter.empty
        default = None if required else parameter.default
        reading = _READING[parameter.annotation]
        parser.add_argument(f"--{name.replace('_', '-')}", required=required, default=default, **reading)

    @functools.wraps(function)
    def main(argv: Sequence[str] | None = None) -> None:
        function(**vars(parser.parse_args(argv)))

    return main


def _json_object(argument: str) -> Spec:
    try:
        settings = json.loads(sys.stdin.read() if argument == "-" else argument)
    except json.JSONDecodeError as error:
        raise UserError(
            f"--spec is not JSON: {error}; allowed: a JSON object, as the rule passes it"
        ) from None
    if not isinstance(settings, dict):
        raise UserError("--spec is not a JSON object; allowed: a JSON object, as the rule passes it")
    return settings


_READING: dict[object, dict[str, Any]] = {
    Spec: {"type": _json_object},
    Path: {"type": Path},
    Path | None: {"type": Path, "nargs": "?"},
    list[Path]: {"type": Path, "nargs": "+"},
    str: {},
}


def start(main: Callable[[Sequence[str] | None], None]) -> None:
    """Run `main` on the command line's arguments and end the process with its exit code."""
    code = run(main)
    if sys.getprofile() or sys.gettrace():  # these write what they found at an ordinary end
        sys.exit(code)
    sys.stdout.flush()
    sys.stderr.flush()
    # All files are closed. Taking torch down object by object would cost another third of a second.
    os._exit(code)


def run(main: Callable[[Sequence[str] | None], None], argv: Sequence[str] | None = None) -> int:
    """Return the exit code of `main(argv)`: 0, or 2 after one line on standard error for a user's mistake."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr
    )
    # Matplotlib's PDF writer lets fontTools report each glyph.
    logging.getLogger("fontTools").setLevel(logging.WARNING)
    with recording(Path(inspect.unwrap(main).__code__.co_filename).stem):
        return exit_code(lambda: main(argv))
