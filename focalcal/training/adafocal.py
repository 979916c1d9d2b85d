"""AdaFocal: one gamma per confidence bin, updated once per epoch by the calibration gap."""

import torch
from torch import Tensor

from focalcal.training.catalogue import loss
from focalcal.training.confidence_bins import equal_mass_gaps
from focalcal.training.losses import (
    LossContext,
    focal_terms,
    inverse_focal_terms,
    true_class_loss,
    true_class_probability,
)
from focalcal.training.recipes import AdaFocalSettings


@loss(id="adafocal", description="gamma of each confidence bin follows its calibration gap", state="AdaFocal")
def adafocal(logits: Tensor, labels: Tensor, context: LossContext) -> Tensor:
    """Return the AdaFocal loss, (n,): focal where the bin's gamma is positive, inverse focal where negative.

    Ghosh et al. 2022, Eqs 4-6: the gamma of the confidence bin that contains p_true.
    """
    gamma = context.state.lookup(true_class_probability(logits, labels))
    return true_class_loss(logits, labels, _signed_focal_terms, gamma)


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


def _signed_focal_terms(
    log_p: Tensor, rest: Tensor, log_rest: Tensor, gamma: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the focal terms where gamma >= 0 and the inverse focal terms of -gamma elsewhere."""
    value, slope = focal_terms(log_p, rest, log_rest, gamma.clamp(min=0))
    inverse_value, inverse_slope = inverse_focal_terms(log_p, rest, log_rest, -gamma.clamp(max=0))
    positive = gamma >= 0
    return torch.where(positive, value, inverse_value), torch.where(positive, slope, inverse_slope)
