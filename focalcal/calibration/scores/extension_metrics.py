"""The user's own metrics, extensions/metrics/NAME.py, as metrics of the catalogue.

Each name is an attribute of this module: a function `(probs, labels)` that checks what the user's returns.
"""

import functools
import math
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from focalcal.calibration.scores.predictions import Predictions, Probs
from focalcal.common.errors import UserError
from focalcal.common.extensions import extension_attributes, extension_file, load_extension


def own_metric(name: str, probs: Probs, labels: ArrayLike) -> float:
    """Return what the user's metric makes of predictions; raise a UserError if it is not a finite number."""
    predictions = Predictions.of(probs, labels)
    # Copies, since other metrics share the arrays.
    value = load_extension("metrics", name)(predictions.probs.copy(), predictions.labels.copy())
    if np.ndim(value) != 0 or not isinstance(np.asarray(value).item(), Real) or not math.isfinite(value):
        raise UserError(
            f"{extension_file('metrics', name)}: metric returned {value!r}; allowed: one finite number, "
            f"lower for better predictions"
        )
    return float(value)


__getattr__ = extension_attributes("metrics", lambda name: functools.partial(own_metric, name))
