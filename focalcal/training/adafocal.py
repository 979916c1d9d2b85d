"""The state of AdaFocal: one gamma per confidence bin, updated once per epoch by the calibration gap."""

import torch
from torch import Tensor

from focalcal.training.recipes import AdaFocalSettings


class AdaFocal:
    """Gammas (bins,) and the inner edges (bins - 1,) of the confidence bins they belong to."""

    def __init__(self, settings: AdaFocalSettings | None = None) -> None:
        self.settings = settings or AdaFocalSettings()
        bins = self.settings.bins
        self.gammas = torch.full((bins,), self.settings.start)
        self.edges = torch.arange(1, bins) / bins

    def lookup(self, probability: Tensor) -> Tensor:
        """Return the gamma of the bin that contains each probability, (n,) for (n,)."""
        self.edges = self.edges.to(probability.device)
        self.gammas = self.gammas.to(probability.device)
        return self.gammas.to(probability.dtype)[torch.bucketize(probability, self.edges)]

    @torch.no_grad()
    def update(self, logits: Tensor, labels: Tensor) -> None:
        """Update every gamma by the gap (confidence - accuracy) of its equal-mass bin of `logits` (n, K).

        gamma <- gamma exp(rate gap) where gamma > 0, gamma exp(-rate gap) where gamma < 0; then the sign
        flips where |gamma| < switch, and the result is clipped. An empty bin (fewer samples than bins) keeps
        its gamma.
        """
        settings = self.settings
        confidence, predicted = torch.softmax(logits.double(), dim=1).max(dim=1)
        gap, edges, _ = equal_mass_gaps(confidence, predicted == labels, settings.bins)
        gammas = self.gammas.to(gap)
        gammas = gammas * torch.exp(torch.where(gammas >= 0, gap, -gap) * settings.rate)
        flipped = torch.where(gammas >= 0, -settings.switch, settings.switch)
        gammas = torch.where(gammas.abs() < settings.switch, flipped, gammas)
        self.gammas = gammas.clamp(settings.low, settings.high).float()
        self.edges = edges.float()

    def state(self) -> dict[str, Tensor]:
        """Return the tensors that belong in a checkpoint."""
        return {"gammas": self.gammas, "edges": self.edges}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Restore the tensors of `state()`."""
        self.gammas, self.edges = state["gammas"], state["edges"]


def equal_mass_gaps(confidence: Tensor, correct: Tensor, bins: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return gap (bins,), inner edges (bins - 1,) and sizes (bins,) of the equal-mass bins of `confidence`.

    A gap is mean confidence - accuracy.
    Bins split the samples, stably sorted by confidence, as evenly as possible, the larger bins first. An edge
    is the largest confidence of the bin below it; an empty bin has gap 0.
    """
    order = torch.argsort(confidence, stable=True)
    sizes = torch.full((bins,), len(order) // bins, device=confidence.device)
    sizes[: len(order) % bins] += 1
    ends = torch.cumsum(sizes, 0)
    sorted_confidence = confidence[order]
    # Sums as a matrix product: a floating-point cumulative sum is not deterministic on CUDA.
    bin_of_rank = torch.repeat_interleave(torch.arange(bins, device=order.device), sizes)
    members = torch.nn.functional.one_hot(bin_of_rank, bins).to(confidence)
    totals = (sorted_confidence - correct[order].to(confidence)) @ members
    edges = sorted_confidence[(ends[:-1] - 1).clamp(min=0)]
    return totals / sizes.clamp(min=1), edges, sizes
