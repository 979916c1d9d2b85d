"""Check that every product of a results folder is what its step wrote."""

import argparse
from pathlib import Path

from focalcal.commands.files import add_json, show
from focalcal.common.errors import UserError

DESCRIPTION = (
    "Check that every product of a results folder is what its step wrote, from the products that are here."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("results", nargs="?", type=Path, default=Path("results"), help="default: results")
    add_json(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print one line of success, or one line per fault before the error."""
    from focalcal.common.checksums import verify  # noqa: PLC0415

    results = arguments.results
    products, faults = verify(results)
    content = {"products": products, "faults": faults}
    if faults:
        show("\n".join(faults), content, as_json=arguments.json)
        raise UserError(f"{results} has {len(faults)} faults among {products} products; repairs are above")
    if not products:
        raise UserError(f"{results} has no products; make them first: snakemake --cores all")
    text = (
        f"All {products} products of {results} are what their steps wrote, from the products that are here."
    )
    show(text, content, as_json=arguments.json)
