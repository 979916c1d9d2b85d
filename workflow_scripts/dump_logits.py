"""Validation and test logits of one trained run, from its weights alone."""

from workflow_scripts.entry import Spec, command, start

from pathlib import Path

from focalcal.common.npz import write_npz
from focalcal.training.logits import logits_of_run
from focalcal.training.recipes import spec_from_dict


@command
def main(spec: Spec, data: Path, weights: Path, output: Path) -> None:
    """Write the logits of a run from a prepared dataset and its weights."""
    write_npz(output, logits_of_run(spec_from_dict(spec), data, weights))


if __name__ == "__main__":
    start(main)
