"""Train one run: weights, history and record of its last epoch; resumes from its checkpoint."""

from workflow_scripts.entry import Spec, command, start

import logging
import signal
import sys
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


@command
def main(spec: Spec, data: Path, checkpoint: Path, weights: Path, history: Path, record: Path) -> None:
    """Train a run on a prepared dataset; a stop signal leaves a checkpoint and ends with 128 + its number."""
    received: list[int] = []
    for stop_signal in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(stop_signal, lambda number, _frame: received.append(number))
    run = spec_from_dict(spec)
    origin = provenance("workflow_scripts/train.py", loss_file(run.loss), model_file(run.model))
    run_identity = {"spec": spec, "data_checksum": checksum(data)}
    saved_state = CheckpointFile(checkpoint, run_identity | {"code": origin["code"]})
    trainer = trainer_of_run(run, data)
    try:
        saved = saved_state.load()
    except CheckpointRefusedError as error:
        LOGGER.warning("checkpoint refused: %s; training starts from the beginning", error)
        saved = None
    try:
        result = trainer.run(
            saved_state,
            resume=saved,
            should_stop=lambda: bool(received),
            on_epoch=EpochProgress(saved.values["epoch"] if saved else 0),
        )
    except TrainingInterruptedError as error:
        LOGGER.warning("%s", error)
        sys.exit(128 + received[0])
    if result.message:
        LOGGER.error("%s", result.message)
    with atomic_output(weights) as partial:
        save_file({name: value.contiguous() for name, value in result.model.state_dict().items()}, partial)
    write_rows(history, result.history, COLUMNS)
    facts = run_identity | {"seed": run.seed} | result.record(trainer.device) | {"provenance": origin}
    write_json(record, facts)
    if result.status == "ok":
        saved_state.remove()


if __name__ == "__main__":
    start(main)
