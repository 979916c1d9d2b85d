"""Logits, labels, losses and gradient norms of every sample of one training epoch."""

import torch
from torch import Tensor, nn

from focalcal.training.history import gradient_quantiles, split_metrics


class EpochRecorder:
    """Buffers on the device, filled batch by batch without synchronisation."""

    def __init__(self, samples: int, classes: int, device: torch.device) -> None:
        self.count = 0
        self.logits = torch.zeros(samples, classes, device=device)
        self.labels = torch.zeros(samples, dtype=torch.int64, device=device)
        self.losses = torch.zeros(samples, device=device)
        self.norms = torch.full((samples,), torch.nan, device=device)

    def add(self, logits: Tensor, labels: Tensor, losses: Tensor, norms: Tensor | None) -> None:
        """Append one batch."""
        part = slice(self.count, self.count + len(labels))
        self.logits[part] = logits
        self.labels[part] = labels
        self.losses[part] = losses
        if norms is not None:
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
        buffers = {"logits": self.logits, "labels": self.labels, "losses": self.losses, "norms": self.norms}
        return {name: buffer[: self.count] for name, buffer in buffers.items()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Refill the buffers from `state()`."""
        self.count = 0
        device = self.logits.device
        self.add(*(state[name].to(device) for name in ("logits", "labels", "losses", "norms")))


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
