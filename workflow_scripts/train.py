"""Train one run: weights, history and record of its last epoch; resumes from its checkpoint."""

from workflow_scripts.entry import spec_argument, start

import argparse
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from safetensors.torch import save_file

from focalcal.common.checksums import checksum
from focalcal.common.csv_rows import write_rows
from focalcal.common.io import atomic_output, write_json
from focalcal.config.provenance import provenance
from focalcal.training.catalogue import loss_file
from focalcal.training.checkpoint import CheckpointFile, CheckpointRefusedError
from focalcal.training.history import COLUMNS
from focalcal.training.loop import TrainingInterruptedError, trainer_of_run
from focalcal.training.models.catalogue import model_file
from focalcal.training.progress import EpochProgress
from focalcal.training.recipes import spec_from_dict

LOGGER = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> None:
    """Train the run of `--spec`; a stop signal leaves a checkpoint and exits with 128 + its number."""
    arguments = _parser().parse_args(argv)
    received: list[int] = []
    for stop_signal in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(stop_signal, lambda number, _frame: received.append(number))
    spec = spec_from_dict(arguments.spec)
    origin = provenance("workflow_scripts/train.py", loss_file(spec.loss), model_file(spec.model))
    run_identity = {"spec": arguments.spec, "data_checksum": checksum(arguments.data)}
    checkpoint = CheckpointFile(arguments.checkpoint, run_identity | {"code": origin["code"]})
    trainer = trainer_of_run(spec, arguments.data)
    try:
        saved = checkpoint.load()
    except CheckpointRefusedError as error:
        LOGGER.warning("checkpoint refused: %s; training starts from the beginning", error)
        saved = None
    try:
        result = trainer.run(
            checkpoint,
            resume=saved,
            should_stop=lambda: bool(received),
            on_epoch=EpochProgress(saved.values["epoch"] if saved else 0),
        )
    except TrainingInterruptedError as error:
        LOGGER.warning("%s", error)
        sys.exit(128 + received[0])
    if result.message:
        LOGGER.error("%s", result.message)
    with atomic_output(arguments.weights) as partial:
        save_file({name: value.contiguous() for name, value in result.model.state_dict().items()}, partial)
    write_rows(arguments.history, result.history, COLUMNS)
    record = run_identity | {"seed": spec.seed} | result.record(trainer.device) | {"provenance": origin}
    write_json(arguments.record, record)
    if result.status == "ok":
        checkpoint.remove()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "dataset, model, loss, seed, recipe")
    parser.add_argument("--data", required=True, type=Path, help="the prepared dataset (.npz)")
    parser.add_argument("--checkpoint", required=True, type=Path, help="folder of the resume checkpoint")
    parser.add_argument("--weights", required=True, type=Path, help="weights to write")
    parser.add_argument("--history", required=True, type=Path, help="scores by epoch to write (.csv)")
    parser.add_argument("--record", required=True, type=Path, help="record to write (.json)")
    return parser


if __name__ == "__main__":
    start(main)
