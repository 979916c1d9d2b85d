"""Validation and test logits of one trained run, from its weights alone."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.common.npz import write_npz
from focalcal.training.logits import logits_of_run
from focalcal.training.recipes import spec_from_dict


def main(argv: Sequence[str] | None = None) -> None:
    """Write `logits.npz` of the run of `--spec`."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "dataset, model, loss, seed, recipe")
    parser.add_argument("--data", required=True, type=Path, help="the prepared dataset (.npz)")
    parser.add_argument("--weights", required=True, type=Path)
    parser.add_argument("--output", required=True, type=Path)
    arguments = parser.parse_args(argv)
    arrays = logits_of_run(spec_from_dict(arguments.spec), arguments.data, arguments.weights)
    write_npz(arguments.output, arrays)


if __name__ == "__main__":
    start(main)
