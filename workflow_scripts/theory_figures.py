"""Draw every figure of the theory stage as PDF and PNG, with its caption beside it."""

from workflow_scripts.entry import start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.common.io import write_text
from focalcal.reporting.claims.evidence import Evidence
from focalcal.reporting.figures.style import house_style, save
from focalcal.reporting.figures.theory import FIGURES


def main(argv: Sequence[str] | None = None) -> None:
    """Write NAME.pdf, NAME.png and NAME.txt for each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evidence", required=True, nargs="+", type=Path, help="tables of results/theory")
    parser.add_argument("--output", required=True, help="folder for the figures")
    parser.add_argument(
        "--only", nargs="+", choices=list(FIGURES), default=list(FIGURES), help="figures to draw"
    )
    arguments = parser.parse_args(argv)
    evidence, folder = Evidence(arguments.evidence), Path(arguments.output)
    with house_style():
        for name in arguments.only:
            save(FIGURES[name].draw(evidence), [folder / f"{name}.pdf", folder / f"{name}.png"])
            write_text(folder / f"{name}.txt", FIGURES[name].caption + "\n")


if __name__ == "__main__":
    start(main)
