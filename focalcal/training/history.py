"""What a run records: per epoch the metrics of M20's Figs 1 to 4 (`history.csv`), at its end `run.json`."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from focalcal.common.samples import SPLITS
from focalcal.training.confidence_bins import equal_mass_gaps, width_bins

METRICS = (
    "loss", "nll", "nll_correct", "nll_incorrect", "entropy", "entropy_correct", "entropy_incorrect",
    "p_true", "p_true_correct", "p_true_incorrect", "error", "ece", "adaece",
)  # fmt: skip
QUANTILES = {f"gradient_norm_q{percent:02d}": percent / 100 for percent in (5, 25, 50, 75, 95)}
COLUMNS = (
    "epoch",
    "learning_rate",
    *(f"{split}_{metric}" for split in SPLITS for metric in METRICS),
    "last_layer_weight_norm",
    *QUANTILES,
    "gammas",
    "images_per_second",
)
"""Columns of `history.csv`; a cell is empty where a quantity was not measured.

Those of the training split are running averages: each sample is predicted once, augmented and in training
mode, before the step that it takes part in. Other splits are measured after the epoch, in evaluation mode.
"""
FINAL_METRICS = ("train_loss", "train_error", "val_loss", "val_nll", "val_error", "val_ece", "val_adaece")
ECE_BINS = 15
SNAPSHOT_BINS = 25
"""Bins of M20's Fig. 2."""


@dataclass
class TrainingResult:
    """The state of a run after the epoch it keeps, or after the last epoch before it diverged."""

    model: nn.Module
    history: list[dict[str, Any]]
    snapshots: list[dict[str, Any]]
    seconds: float
    status: str = "ok"
    message: str | None = None
    kept_epoch: int | None = None
    """The epoch, counted from 1, of the weights; None if the run diverged."""

    def record(self, device: torch.device) -> dict[str, Any]:
        """Return the results in `run.json` as JSON values; the caller adds spec, data and provenance."""
        kept = [row for row in self.history if row["epoch"] == self.kept_epoch] or self.history
        last = kept[-1] if kept else {}
        speeds = sorted(row["images_per_second"] for row in self.history)
        return {
            "status": self.status,
            "message": self.message,
            "device": device.type,
            "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
            "threads": torch.get_num_threads(),
            "epochs": len(self.history),
            "kept_epoch": self.kept_epoch,
            "parameters": sum(parameter.numel() for parameter in self.model.parameters()),
            "images_per_second": speeds[len(speeds) // 2] if speeds else None,
            "wall_seconds": round(self.seconds, 3),
            "final": {name: last.get(name) for name in FINAL_METRICS},
            "snapshots": self.snapshots,
        }


class EpochRecorder:
    """Logits, labels, losses and gradient norms of every sample of an epoch.

    The buffers are on the device and are filled batch by batch without synchronisation.
    """

    BUFFERS = ("logits", "labels", "losses", "norms")

    def __init__(self, samples: int, classes: int, device: torch.device) -> None:
        self.count = 0
        self.logits = torch.zeros(samples, classes, device=device)
        self.labels = torch.zeros(samples, dtype=torch.int64, device=device)
        self.losses = torch.zeros(samples, device=device)
        self.norms = torch.full((samples,), torch.nan, device=device)

    def add(self, logits: Tensor, labels: Tensor, losses: Tensor, norms: Tensor | None) -> None:
        """Append one batch; norms of another number of rows than samples are no samples' norms."""
        part = slice(self.count, self.count + len(labels))
        self.logits[part] = logits
        self.labels[part] = labels
        self.losses[part] = losses
        if norms is not None and len(norms) == len(labels):
            self.norms[part] = norms
        self.count += len(labels)

    def first_divergence(self, since: int) -> int | None:
        """Return the first sample from `since` on whose loss is not finite, None if all are."""
        bad = ~torch.isfinite(self.losses[since : self.count])
        return since + int(bad.nonzero()[0]) if bad.any() else None

    def metrics(self) -> dict[str, float | None]:
        """Return the history columns of the training split, measured during training."""
        return split_metrics("train", self.logits, self.labels, self.losses) | gradient_quantiles(self.norms)

    def state(self) -> dict[str, Tensor]:
        """Return the filled part of the buffers, for a checkpoint inside an epoch."""
        return {name: getattr(self, name)[: self.count] for name in self.BUFFERS}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Refill the buffers from `state()`."""
        self.count = 0
        self.add(*(state[name].to(self.logits.device) for name in self.BUFFERS))


class GradientNormProbe:
    """Norm of each sample's loss gradient with respect to the last linear layer's weights (M20 Fig. 4).

    That gradient is the outer product of the logit gradient and the layer's input, so its norm is the product
    of their norms and needs no second pass. There is none if the layer's output is not the logits.
    """

    def __init__(self, layer: nn.Linear | None) -> None:
        self.features: Tensor | None = None
        self.outputs = None if layer is None else layer.out_features
        if layer is not None:
            layer.register_forward_pre_hook(self._remember)

    def norms(self, logit_gradient: Tensor, samples_in_mean: int) -> Tensor | None:
        """Return the norms (n,); a mean over `samples_in_mean` samples is undone (1 for a sum)."""
        features, self.features = self.features, None
        if features is None or features.ndim != 2 or self.outputs != logit_gradient.shape[1]:
            return None
        scale = samples_in_mean * torch.linalg.vector_norm(features.float(), dim=1)
        return scale * torch.linalg.vector_norm(logit_gradient.float(), dim=1)

    def _remember(self, _layer: nn.Module, arguments: tuple[Tensor, ...]) -> None:
        self.features = arguments[0].detach()


def split_metrics(split: str, logits: Tensor, labels: Tensor, losses: Tensor) -> dict[str, float | None]:
    """Return the columns of `split` from its logits (n, K), labels (n,) and loss values (n,).

    A mean over the correctly or incorrectly classified samples is None if there are none.
    """
    log_probs = torch.log_softmax(logits.double(), dim=1)
    probs = torch.exp(log_probs)
    confidence, predicted = probs.max(dim=1)
    correct = predicted == labels
    log_true = log_probs.gather(1, labels[:, None])[:, 0]
    entropy = -(probs * log_probs).nan_to_num(nan=0.0).sum(dim=1)
    series = torch.stack([-log_true, entropy, torch.exp(log_true)])
    weights = torch.stack([torch.ones_like(confidence), correct.to(confidence), (~correct).to(confidence)])
    counts = weights.sum(dim=1)
    means = (series @ weights.T / counts).tolist()
    metrics = {
        f"{name}{group}": mean if count else None
        for name, row in zip(("nll", "entropy", "p_true"), means, strict=True)
        for group, mean, count in zip(("", "_correct", "_incorrect"), row, counts.tolist(), strict=True)
    }
    metrics["loss"] = losses.double().mean().item()
    metrics["error"] = 1 - correct.double().mean().item()
    _, total, hits = width_bins(confidence, correct, ECE_BINS)
    metrics["ece"] = ((total - hits).abs().sum() / len(confidence)).item()
    gaps, _, sizes = equal_mass_gaps(confidence, correct, ECE_BINS)
    metrics["adaece"] = ((gaps.abs() * sizes).sum() / len(labels)).item()
    return {f"{split}_{name}": metrics[name] for name in METRICS}


def snapshot_bins(logits: Tensor, labels: Tensor, bins: int = SNAPSHOT_BINS) -> dict[str, list[float]]:
    """Return count, mean confidence and accuracy of each equal-width confidence bin (lo, hi]."""
    confidence, predicted = torch.softmax(logits.double(), dim=1).max(dim=1)
    count, total, hits = width_bins(confidence, predicted == labels, bins)
    safe = count.clamp(min=1)
    return {
        "count": count.tolist(),
        "confidence": (total / safe).tolist(),
        "accuracy": (hits / safe).tolist(),
    }


def gradient_quantiles(norms: Tensor) -> dict[str, float | None]:
    """Return the quantile columns of the per-sample gradient norms (n,) of the last linear layer.

    The values are None if norms are NaN, that is, if the model has no such layer.
    """
    if torch.isnan(norms).any():
        return dict.fromkeys(QUANTILES)
    quantiles = norms.new_tensor(list(QUANTILES.values()), dtype=torch.float64)
    return dict(zip(QUANTILES, torch.quantile(norms.double(), quantiles).tolist(), strict=True))
