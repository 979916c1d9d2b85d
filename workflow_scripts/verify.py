"""Check that every product is what its step wrote, from the products that are here."""

from workflow_scripts.entry import start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.common.chain import verify
from focalcal.common.errors import UserError


def main(argv: Sequence[str] | None = None) -> None:
    """Print one line of success, or one line per fault before the error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", required=True, type=Path, help="the results folder")
    results = parser.parse_args(argv).results
    products, faults = verify(results)
    for fault in faults:
        print(fault)
    if faults:
        raise UserError(f"{results} has {len(faults)} faults among {products} products; repairs are above")
    if not products:
        raise UserError(f"{results} has no products; make them first: snakemake --cores all")
    print(
        f"All {products} products of {results} are what their steps wrote, from the products that are here."
    )


if __name__ == "__main__":
    start(main)
