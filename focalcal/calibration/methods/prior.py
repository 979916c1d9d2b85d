"""Temperature scaling with a prior, which is safe with any number of validation samples."""

import math
from dataclasses import replace

import numpy as np

from focalcal.calibration.calibrators import FocalMap
from focalcal.calibration.catalogue import calibrator
from focalcal.calibration.fitting.continuous import best_temperature_of, mean_logits, temperature_range
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import Fit
from focalcal.calibration.methods.affine import LogLossCalibrator

PSEUDO_SAMPLES = 0.5
"""Weight of the pseudo-sample, in samples."""
PRIOR_DEVIATION = 0.5
"""Standard deviation of log T under its prior."""


@calibrator(
    id="ts-prior",
    label="TS-P",
    full_label="temperature scaling with a prior (TS-P)",
    color="blue",
    marker="P",
    criteria=("nll",),
    shown=False,
    fixed=("gamma",),
    replaces=("ts",),
)
class PriorTemperatureScaling(LogLossCalibrator, FocalMap):
    """Method `ts-prior`: softmax(logits / T), T fitted to the samples, half a pseudo-sample and a prior.

    If a network classifies all validation samples correctly, their log-loss falls for ever as T goes to 0,
    and one test sample that it gets wrong then costs as many nats as one likes. The pseudo-sample prevents
    that: it stands for an average validation sample whose label is drawn uniformly from all classes, and it
    counts as half a sample. Platt (1999, Sec. 2.2) protects the binary case in the same way, by targets that
    are not quite 0 and 1. Beside it, log T has a normal prior around 0 with standard deviation 1/2: most
    networks need temperatures between 0.4 and 2.7. With thousands of samples T is that of temperature
    scaling.

    Attributes
    ----------
    temperature_ : float
        The best temperature.

    Examples
    --------
    >>> import numpy as np
    >>> from focalcal.calibration.methods.prior import PriorTemperatureScaling
    >>> logits = 4.0 * np.eye(3)[[0, 1, 2, 0, 1]]  # five samples, no error among them
    >>> round(PriorTemperatureScaling().fit(logits, np.array([0, 1, 2, 0, 1])).temperature_, 2)
    1.08
    """

    def _search(self, objective: Objective) -> Fit:
        found = best_temperature_of(
            lambda temperature: penalised_loss(objective, temperature), temperature_range(objective.logits)
        )
        return replace(found, score=None)


def penalised_loss(objective: Objective, temperature: float) -> float:
    """Return the log-loss of all samples and of the pseudo-sample minus the log-prior of T, in nats.

    With n samples, z the logits and w the weight of the pseudo-sample, the log-losses add up to
    `n nll(T) + w mean_i mean_k(-log p_ik)` = `(n + w) nll(T) + w mean_i(z_iy - mean_k z_ik) / T`. The prior
    counts from its largest value. Options that a question lacks do not count.
    """
    samples = len(objective.labels)
    of_labels = objective.logits[np.arange(samples), objective.labels]
    lead = float(np.mean(of_labels - mean_logits(objective.logits)))
    nll = float(objective.nll([0.0], [temperature])[0, 0])
    prior = (math.log(temperature) / PRIOR_DEVIATION) ** 2 / 2
    return (samples + PSEUDO_SAMPLES) * nll + PSEUDO_SAMPLES * lead / temperature + prior
