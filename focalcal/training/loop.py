"""The training loop: from a spec and prepared data to weights and history, resumable bit for bit."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from focalcal.data.prepared import PreparedData, load_dataset
from focalcal.training.batches import (
    Batch,
    EpochDraw,
    ResidentSplit,
    derived_seed,
    predict,
    training_batches,
)
from focalcal.training.checkpoint import Checkpoint, CheckpointFile
from focalcal.training.devices import choose_device, configure_torch
from focalcal.training.history import (
    EpochRecorder,
    GradientNormProbe,
    TrainingResult,
    snapshot_bins,
    split_metrics,
)
from focalcal.training.models.build import initial_model, last_linear, word_vectors
from focalcal.training.objective import TrainingObjective
from focalcal.training.optimizers import make_optimizer, move_word_vectors
from focalcal.training.recipes import RunSpec, learning_rate
from focalcal.training.residents import resident_split

HOLDOUT_SEED = 1
"""AdaFocal's hold-out set, like the validation split, is the same for every seed."""
GPU_CHECK_BATCHES = 100
"""Batches between two divergence checks on a GPU, each of which synchronises; a CPU checks every batch."""


class TrainingInterruptedError(Exception):
    """The run was asked to stop; it can resume from the checkpoint named in the message."""


class _DivergedError(Exception):
    pass


@dataclass
class _Progress:
    """Completed epochs, completed batches of the current epoch, and the records so far."""

    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)
    snapshots: list[dict[str, Any]] = field(default_factory=list)


def trainer_of_run(spec: RunSpec, data: Path) -> "Trainer":
    """Return a run, ready to start on its device, from the file of its dataset; configure torch for it."""
    device = choose_device(spec.recipe)
    configure_torch(spec.recipe, device)
    return Trainer(spec, load_dataset(data, memory_map=True).for_seed(spec.seed), device)


class Trainer:
    """One run, ready to start; `run()` trains it to completion."""

    def __init__(self, spec: RunSpec, data: PreparedData, device: torch.device) -> None:
        self.spec, self.recipe, self.device = spec, spec.recipe, device
        self.objective = TrainingObjective(spec.loss, self.recipe)
        train, holdout = self._training_indices(data)
        self.train_split = resident_split(data, train, device)
        self.splits = {"val": resident_split(data, data.val_indices, device)}
        if self.recipe.history_test:
            self.splits["test"] = resident_split(data, data.test_indices, device)
        self.holdout = None if holdout is None else resident_split(data, holdout, device)
        self.steps_per_epoch = math.ceil(len(train) / self.recipe.batch_size)
        self.model = initial_model(spec, data, device)
        trained = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        # Word vectors, whose gradients are sparse, have their own learning rate.
        self.word_vectors = [parameter for parameter in trained if parameter is word_vectors(self.model)]
        self.parameters = [parameter for parameter in trained if parameter is not word_vectors(self.model)]
        self.optimizer = make_optimizer(self.parameters, self.recipe)
        self.probe = GradientNormProbe(last_linear(self.model))
        self.network = torch.compile(self.model) if self._compiles() else self.model
        self.recorder = EpochRecorder(len(train), data.classes, device)
        self.progress = _Progress()
        self.good_weights: dict[str, Tensor] = {}
        self.best_weights: dict[str, Tensor] = {}

    def run(
        self,
        checkpoint: CheckpointFile | None = None,
        *,
        resume: Checkpoint | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        on_epoch: Callable[[dict[str, Any], int], None] = lambda _row, _epochs: None,
    ) -> TrainingResult:
        """Return the trained model and its history, continuing from `resume` if given.

        Checkpoints are written at the ends of epochs. When `should_stop()` becomes true, one is written
        after the current batch and TrainingInterruptedError is raised. `on_epoch` is called with each history
        row and the number of epochs.
        """
        if resume:
            self._restore(resume)
        progress = self.progress
        try:
            while progress.epoch < self.recipe.epochs:
                if self.train_epoch(should_stop):
                    self._end_epoch()
                    on_epoch(progress.history[-1], self.recipe.epochs)
                if progress.epoch < self.recipe.epochs:
                    stops = progress.batch > 0 or should_stop()
                    if stops or progress.epoch % self.recipe.checkpoint_every == 0:
                        self._save(checkpoint)
                    if stops:
                        raise TrainingInterruptedError(self._interruption(checkpoint))
        except _DivergedError as error:
            return self._diverged(str(error), checkpoint)
        if self.best_weights:
            self.model.load_state_dict(self.best_weights)
        return TrainingResult(
            self.model, progress.history, progress.snapshots, progress.seconds, kept_epoch=self._kept_epoch()
        )

    def train_epoch(self, should_stop: Callable[[], bool]) -> bool:
        """Train the rest of the current epoch; return False if stopped before its end."""
        progress, started = self.progress, time.monotonic()
        if progress.batch == 0:
            self.recorder.count = 0
            self.good_weights = {name: value.clone() for name, value in self.model.state_dict().items()}
            torch.manual_seed(derived_seed(self.spec.seed, progress.epoch))
        self.objective.start_epoch(progress.epoch)
        self.model.train()
        first_sample = self.recorder.count
        checked = 0  # the losses recorded before a resumption may not have been checked
        for batch in self._batches():
            self._train_batch(batch)
            progress.batch += 1
            if self.device.type == "cpu" or progress.batch % GPU_CHECK_BATCHES == 0:
                self._check_divergence(checked)
                checked = self.recorder.count
            if progress.batch < self.steps_per_epoch and should_stop():
                progress.seconds += time.monotonic() - started
                return False
        self._check_divergence(checked)
        elapsed = time.monotonic() - started
        progress.seconds += elapsed
        self.images_per_second = (self.recorder.count - first_sample) / elapsed
        return True

    def _train_batch(self, batch: Batch) -> None:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._uses_bf16()):
            logits = self.network(batch.inputs)
        logits.retain_grad()
        values = batch.sample_losses(self.objective.values(logits, batch.targets))
        for parameter in (*self.parameters, *self.word_vectors):
            parameter.grad = None
        self.objective.reduce(values).backward()
        samples_in_mean = len(batch.labels) if self.objective.reduction == "mean" else 1
        norms = self.probe.norms(logits.grad, samples_in_mean)
        if self.recipe.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.parameters, self.recipe.clip_norm)
        self.optimizer.step(self._learning_rate())
        for vectors in self.word_vectors:
            move_word_vectors(vectors, self.recipe.word_vector_rate)
        self.recorder.add(batch.sample_logits(logits.detach()), batch.labels, values.detach(), norms)

    def _end_epoch(self) -> None:
        """Evaluate, let the loss adapt, append the history row and advance to the next epoch."""
        progress, started = self.progress, time.monotonic()
        row: dict[str, Any] = {"epoch": progress.epoch + 1, "learning_rate": self._learning_rate(last=True)}
        row |= self.recorder.metrics()
        evaluated = self._evaluate(row)
        layer = last_linear(self.model)
        row["last_layer_weight_norm"] = None if layer is None else layer.weight.detach().norm().item()
        row["gammas"] = " ".join(f"{gamma:.6g}" for gamma in self.objective.gammas())
        row["images_per_second"] = round(self.images_per_second, 1)
        if self.objective.is_adaptive:
            self.objective.end_epoch(*(evaluated if self.holdout is None else self._predicted(self.holdout)))
        if progress.epoch + 1 in self.recipe.snapshot_epochs:
            bins = snapshot_bins(self.recorder.logits, self.recorder.labels)
            progress.snapshots.append({"epoch": progress.epoch + 1, "split": "train", **bins})
        progress.history.append(row)
        progress.epoch, progress.batch = progress.epoch + 1, 0
        if self.recipe.keep == "best" and self._kept_epoch() == progress.epoch:
            self.best_weights = {name: value.clone() for name, value in self.model.state_dict().items()}
        progress.seconds += time.monotonic() - started

    def _kept_epoch(self) -> int:
        """Return the epoch whose weights the recipe keeps: the last, or the first with the best accuracy."""
        evaluated = [row for row in self.progress.history if row.get("val_error") is not None]
        if self.recipe.keep == "last" or not evaluated:
            return self.progress.epoch
        return min(evaluated, key=lambda row: row["val_error"])["epoch"]

    def _evaluate(self, row: dict[str, Any]) -> tuple[Tensor, Tensor] | None:
        """Add the evaluated splits' columns to `row`; return validation logits and labels if evaluated."""
        epoch = self.progress.epoch + 1
        needs_val = self.objective.is_adaptive and self.holdout is None
        if not (needs_val or epoch % self.recipe.evaluate_every == 0 or epoch == self.recipe.epochs):
            # The last step may have broken the weights, which the next epoch would keep as good ones.
            logits, _ = self._predicted(self.splits["val"], self.recipe.batch_size)
            self._check_finite("val", logits)
            return None
        predictions = {name: self._predicted(split) for name, split in self.splits.items()}
        for name, (logits, labels) in predictions.items():
            self._check_finite(name, logits)
            row |= split_metrics(name, logits, labels, self.objective.values(logits, labels))
        return predictions["val"]

    def _check_finite(self, name: str, logits: Tensor) -> None:
        if not torch.isfinite(logits).all():
            raise _DivergedError(f"{name} logits are not finite after {self._position()}")

    def _predicted(self, split: ResidentSplit, count: int | None = None) -> tuple[Tensor, Tensor]:
        """Return logits and labels of a split, or of its first `count` samples."""
        logits = predict(self.network, split, self.recipe.evaluation_batch_size, count)
        return logits, split.labels[:count]

    def _batches(self) -> Iterator[Batch]:
        count = len(self.train_split)
        draw = EpochDraw.of(self.spec.seed, self.progress.epoch, count, self.recipe, self.device)
        return training_batches(self.train_split, draw, self.recipe, self.progress.batch)

    def _learning_rate(self, *, last: bool = False) -> float:
        batch = self.steps_per_epoch - 1 if last else self.progress.batch
        step = self.progress.epoch * self.steps_per_epoch + batch
        return learning_rate(self.recipe, step, self.steps_per_epoch)

    def _check_divergence(self, since: int) -> None:
        if (sample := self.recorder.first_divergence(since)) is not None:
            self.progress.batch = sample // self.recipe.batch_size
            raise _DivergedError(f"loss is {self.recorder.losses[sample].item()} at {self._position()}")

    def _position(self) -> str:
        batch = min(self.progress.batch + 1, self.steps_per_epoch)
        rate = self._learning_rate()
        return f"epoch {self.progress.epoch + 1}, batch {batch}, learning rate {rate:g}"

    def _diverged(self, reason: str, checkpoint: CheckpointFile | None) -> TrainingResult:
        """Return the result of a diverged run, with the weights from the start of the failed epoch."""
        has_file = checkpoint is not None and checkpoint.path.exists()
        kept = f"last checkpoint: {checkpoint.path if has_file else 'none'}"
        message = f"diverged: {reason}; weights are those after epoch {self.progress.epoch}; {kept}"
        self.model.load_state_dict(self.good_weights)
        progress = self.progress
        return TrainingResult(
            self.model, progress.history, progress.snapshots, progress.seconds, "diverged", message
        )

    def _interruption(self, checkpoint: CheckpointFile | None) -> str:
        where = f"continue from {checkpoint.path}" if checkpoint else "no checkpoint was requested"
        progress = self.progress
        return f"stopped in epoch {progress.epoch + 1} after batch {progress.batch} on a signal; {where}"

    def _save(self, checkpoint: CheckpointFile | None) -> None:
        if checkpoint is None:
            return
        progress = self.progress
        groups = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state(),
            "loss": self.objective.state(),
            "best": self.best_weights,
        }
        if progress.batch:
            groups |= {"recorder": self.recorder.state(), "good": self.good_weights, "rng": self._rng_state()}
        tensors = {
            f"{group}/{name}": value for group, values in groups.items() for name, value in values.items()
        }
        checkpoint.save(Checkpoint(tensors, dict(vars(progress))))

    def _restore(self, saved: Checkpoint) -> None:
        groups: dict[str, dict[str, Tensor]] = {}
        for full_name, tensor in saved.tensors.items():
            group, _, name = full_name.partition("/")
            groups.setdefault(group, {})[name] = tensor
        self.model.load_state_dict(groups["model"])
        for name, tensor in self.optimizer.state().items():
            tensor.copy_(groups["optimizer"][name])
        self.objective.load_state(groups.get("loss", {}), self.device)
        self.best_weights = groups.get("best", {})
        self.progress = _Progress(**saved.values)
        if self.progress.batch:
            self.recorder.load_state(groups["recorder"])
            self.good_weights = groups["good"]
            torch.set_rng_state(groups["rng"]["cpu"])
            if self.device.type == "cuda":
                torch.cuda.set_rng_state(groups["rng"]["cuda"], self.device)

    def _rng_state(self) -> dict[str, Tensor]:
        state = {"cpu": torch.get_rng_state()}
        if self.device.type == "cuda":
            state["cuda"] = torch.cuda.get_rng_state(self.device)
        return state

    def _training_indices(self, data: PreparedData) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the training samples, and those held out for AdaFocal if the recipe asks for it."""
        indices = data.train_indices
        if not (self.objective.is_adaptive and self.recipe.adafocal_split == "holdout"):
            return indices, None
        order = np.random.default_rng(HOLDOUT_SEED).permutation(len(indices))
        withheld = order[: max(1, round(self.recipe.holdout_fraction * len(indices)))]
        return np.delete(indices, withheld), indices[np.sort(withheld)]

    def _uses_bf16(self) -> bool:
        return self.device.type == "cuda" and self.recipe.precision == "bf16"

    def _compiles(self) -> bool:
        return self.device.type == "cuda" and self.recipe.compile
