"""What several commands ask about a file of logits, and how they answer."""

import argparse
import contextlib
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from focalcal.common.errors import UserError

FORMATS = (
    ".npz, .npy, .csv, .tsv, .parquet, .safetensors, .pt, .pkl, .h5, samples_*.jsonl of "
    "lm-evaluation-harness, or a folder with these"
)


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options that answer what a file leaves open."""
    asked = parser.add_argument_group("what a file may leave open")
    asked.add_argument(
        "--kind",
        choices=("logits", "probabilities"),
        help="what the file holds; by default what its names say, or else logits",
    )
    asked.add_argument(
        "--names",
        nargs="+",
        default=[],
        type=_name,
        metavar="ROLE=NAME",
        help="which arrays to take, as logits=out labels=gold",
    )
    asked.add_argument(
        "--classes",
        nargs="+",
        default=[],
        metavar="CLASS",
        help="names in labels, in order of columns",
    )
    asked.add_argument("--first-label", type=int, choices=(0, 1), help="number of the first class in labels")
    asked.add_argument("--group", default="", help="group of an HDF5 file, as cifar10/resnet")


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option that prints the answer for programs."""
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")


def answers_of(arguments: argparse.Namespace) -> Any:
    """Return what the options say about a file."""
    from focalcal.calibration.files.names import Answers  # noqa: PLC0415

    return Answers(
        arguments.kind,
        dict(arguments.names),
        tuple(arguments.classes),
        arguments.first_label,
        arguments.group,
    )


def tell(notes: Iterable[str], warnings: Iterable[str] = ()) -> None:
    """Say on standard error how a file was understood, and what to know about it."""
    for note in notes:
        print(f"understood: {note}", file=sys.stderr)
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


def show(text: str, content: object, *, as_json: bool) -> None:
    """Print an answer in words or as JSON."""
    print(json.dumps(content, indent=2) if as_json else text)


def check_suffix(option: str, path: Path, allowed: tuple[str, ...]) -> None:
    """Raise a UserError unless a path ends as it must, so that no other file is replaced."""
    if path.suffix.lower() not in allowed or path.is_dir():
        raise UserError(
            f"{option} is {str(path)!r}; allowed: the name of a file that ends with {' or '.join(allowed)}; "
            f"add it"
        )


@contextlib.contextmanager
def needing(extra: str) -> Iterator[None]:
    """Turn the lack of an optional package into one line that says how to install it."""
    try:
        yield
    except ImportError as error:
        raise UserError(
            f"this command needs the package {error.name!r}; install what it needs with: "
            f"pip install '.[{extra}]' in the clone"
        ) from None


def _name(text: str) -> tuple[str, str]:
    """Return what an array is to be taken for, and its name."""
    role, sign, name = text.partition("=")
    if not (role and sign and name):
        raise argparse.ArgumentTypeError(f"{text!r}; allowed: ROLE=NAME, as labels=gold")
    return role, name
