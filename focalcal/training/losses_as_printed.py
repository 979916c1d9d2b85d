"""M20's sample-dependent focal losses with the threshold of its text; those of its code are in `losses`."""

from torch import Tensor

from focalcal.training.catalogue import loss
from focalcal.training.losses import LossContext, focal_sample_dependent


@loss(
    id="flsd-53-paper",
    description="as M20 prints FLSD-53: gamma 5 for p < 0.19, else 3",
    gammas=(5.0, 3.0),
    thresholds=(0.19,),
)
@loss(
    id="flsd-532-paper",
    description="as M20 prints FLSD-532: gamma 5 for p < 0.19, 3 for p < 0.5, else 2",
    gammas=(5.0, 3.0, 2.0),
    thresholds=(0.19, 0.5),
)
def focal_sample_dependent_as_printed(logits: Tensor, labels: Tensor, context: LossContext) -> Tensor:
    """Return the focal loss whose gamma falls as p_true passes the thresholds, (n,) (M20 section 5)."""
    return focal_sample_dependent(logits, labels, context)
