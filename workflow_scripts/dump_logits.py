"""Validation and test logits of one trained run, from its weights alone."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from focalcal.common.io import atomic_output
from focalcal.data import prepared
from focalcal.training.devices import choose_device, configure_torch
from focalcal.training.logits import dump_logits
from focalcal.training.recipes import spec_from_dict


def main(argv: Sequence[str] | None = None) -> None:
    """Write `logits.npz` of the run of `--spec`."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "dataset, model, loss, seed, recipe")
    parser.add_argument("--data", required=True, type=Path, help="the prepared dataset (.npz)")
    parser.add_argument("--weights", required=True, type=Path)
    parser.add_argument("--output", required=True, type=Path)
    arguments = parser.parse_args(argv)
    spec = spec_from_dict(arguments.spec)
    # Prediction needs no GPU, and on a cluster only training asks for one.
    recipe = replace(spec.recipe, device="auto") if spec.recipe.device == "cuda" else spec.recipe
    device = choose_device(recipe)
    configure_torch(recipe, device)
    data = prepared.load_dataset(arguments.data, memory_map=True).for_seed(spec.seed)
    arrays = dump_logits(spec, data, arguments.weights, device)
    with atomic_output(arguments.output) as partial:
        np.savez(partial, **arrays)


if __name__ == "__main__":
    start(main)
