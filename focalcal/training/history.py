"""Metrics recorded at the end of each epoch, sufficient for M20's Figs 1 to 4 without retraining."""

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from focalcal.common.samples import SPLITS
from focalcal.training.adafocal import equal_mass_gaps

METRICS = (
    "loss", "nll", "nll_correct", "nll_incorrect", "entropy", "entropy_correct", "entropy_incorrect",
    "p_true", "p_true_correct", "p_true_incorrect", "error", "ece", "adaece",
)  # fmt: skip
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
COLUMNS = (
    "epoch",
    "learning_rate",
    *(f"{split}_{metric}" for split in SPLITS for metric in METRICS),
    "last_layer_weight_norm",
    *(f"gradient_norm_q{round(100 * quantile):02d}" for quantile in QUANTILES),
    "gammas",
    "images_per_second",
)
ECE_BINS = 15
SNAPSHOT_BINS = 25
"""Bins of M20's Fig. 2."""


def split_metrics(split: str, logits: Tensor, labels: Tensor, losses: Tensor) -> dict[str, float | None]:
    """Return the columns of `split` from its logits (n, K), labels (n,) and loss values (n,).

    NLL, entropy and p_true are also given for correctly and incorrectly classified samples (None if there are
    none).
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
    names = [
        f"{name}{group}" for name in ("nll", "entropy", "p_true") for group in ("", "_correct", "_incorrect")
    ]
    has_samples = (counts > 0).tolist() * 3
    values = [value for row in means for value in row]
    metrics = {
        name: value if is_known else None
        for name, value, is_known in zip(names, values, has_samples, strict=True)
    }
    metrics["loss"] = losses.double().mean().item()
    metrics["error"] = 1 - correct.double().mean().item()
    metrics["ece"] = _equal_width_ece(confidence, correct)
    gaps, _, sizes = equal_mass_gaps(confidence, correct, ECE_BINS)
    metrics["adaece"] = ((gaps.abs() * sizes).sum() / len(labels)).item()
    return {f"{split}_{name}": metrics[name] for name in METRICS}


def snapshot_bins(logits: Tensor, labels: Tensor, bins: int = SNAPSHOT_BINS) -> dict[str, list[float]]:
    """Return count, mean confidence and accuracy of each equal-width confidence bin (lo, hi]."""
    confidence, predicted = torch.softmax(logits.double(), dim=1).max(dim=1)
    count, total, hits = _width_bins(confidence, predicted == labels, bins)
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
        values = [None] * len(QUANTILES)
    else:
        values = torch.quantile(norms.double(), norms.new_tensor(QUANTILES, dtype=torch.float64)).tolist()
    return {f"gradient_norm_q{round(100 * q):02d}": value for q, value in zip(QUANTILES, values, strict=True)}


def history_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return `history.csv`: one line per epoch, with empty cells for quantities that were not measured."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: "" if value is None else value for name, value in row.items()} for row in rows)
    return stream.getvalue()


def _equal_width_ece(confidence: Tensor, correct: Tensor) -> float:
    _, total, hits = _width_bins(confidence, correct, ECE_BINS)
    return ((total - hits).abs().sum() / len(confidence)).item()


def _width_bins(confidence: Tensor, correct: Tensor, bins: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return sample count, sum of confidence and number correct of each bin (lo, hi], float64 (bins,)."""
    members = torch.nn.functional.one_hot(
        ((confidence * bins).ceil().long() - 1).clamp(0, bins - 1), bins
    ).double()
    return members.sum(dim=0), confidence @ members, correct.double() @ members
