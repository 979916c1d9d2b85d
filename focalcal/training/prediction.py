"""A network's predictions on a split."""

import torch
from torch import Tensor, nn

from focalcal.training.batches import ResidentSplit, evaluation_batches


@torch.no_grad()
def predict(network: nn.Module, split: ResidentSplit, batch_size: int) -> Tensor:
    """Return float32 logits (n, K) of `split` in evaluation mode, independent of the batch size."""
    network.eval()
    return torch.cat([network(inputs).float() for inputs in evaluation_batches(split, batch_size)])
