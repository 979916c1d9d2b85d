"""Two temperatures: one for the top class against the rest, one among the rest."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.catalogue import calibrator
from focalcal.calibration.fitting.continuous import best_temperature_of, temperature_range, with_minimum
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import Fit
from focalcal.calibration.methods.affine import LogLossCalibrator
from focalcal.calibration.methods.top_label import top_versus_all_loss
from focalcal.calibration.parameters import TEMPERATURE
from focalcal.theory.psi import log_psi
from focalcal.theory.top_class import MOST_NEGATIVE, row_blocks


@calibrator(
    id="two-ts",
    label="Two-TS",
    full_label="scaling with two temperatures (Two-TS)",
    color="sky",
    marker="D",
    criteria=("nll",),
    changes_predictions=True,
)
class TwoTemperatureScaling(LogLossCalibrator):
    """Method `two-ts`: temperature T_top for the top class against the rest, T_rest among the rest.

    With logits z and their largest one at class t, q_t = softmax(z / T_top)_t, and q_i = (1 - q_t) times
    softmax over all j != t of (z_j / T_rest), at i. Equal temperatures are temperature scaling. The log-loss
    is a sum of two, so that each temperature has a fit of its own: T_top minimises the log-loss of `the top
    class is the label` (top-versus-all, Le Coz et al. 2024), T_rest that of the labels among the other
    classes, over the samples whose top class is wrong. For two classes, T_rest is T_top. Where either goes to
    0, as without errors, there is no fit. Focal temperature scaling is nearly a curve in this family, with
    T_top = T / (1 + gamma) and T_rest = T, wherever the network is confident (K24 Sec. 3).

    The top class stays the most probable one unless q_t < (1 - q_t) times the largest share of the rest,
    which takes a T_rest below T_top.

    Attributes
    ----------
    parameters : dict
        `top_temperature` and `rest_temperature`.

    Examples
    --------
    >>> import numpy as np
    >>> scaling = TwoTemperatureScaling().fit(np.log([[6, 3, 1]] * 10), np.array([0] * 6 + [1] * 2 + [2] * 2))
    >>> scaling.predict_proba(np.log([[6.0, 3.0, 1.0]])).round(2)
    array([[0.6, 0.2, 0.2]])
    """

    declared: ClassVar = {"top_temperature": TEMPERATURE, "rest_temperature": TEMPERATURE}

    def log_map(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log-probabilities, (n, k), finite for finite logits."""
        out = np.empty_like(logits)
        for block in row_blocks(*logits.shape):
            out[block] = _log_probabilities(
                logits[block], self.parameters["top_temperature"], self.parameters["rest_temperature"]
            )
        return out

    def _search(self, objective: Objective) -> Fit:
        logits, labels = objective.logits, objective.labels
        bounds = temperature_range(logits)
        top = with_minimum(
            best_temperature_of(lambda temperature: top_versus_all_loss(logits, labels, temperature), bounds)
        )
        rest_logits, rest_labels = _among_the_rest(logits, labels)
        if rest_logits.shape[1] == 1 or len(rest_labels) == 0:
            rest = Fit(top.parameters, evaluations=0)
        else:
            rows = np.arange(len(rest_labels))
            rest = with_minimum(
                best_temperature_of(
                    lambda temperature: (
                        -float(np.mean(log_psi(rest_logits, 0.0, temperature)[rows, rest_labels]))
                    ),
                    bounds,
                )
            )
        hits = {"top_temperature": top.boundaries, "rest_temperature": rest.boundaries}
        return Fit(
            {
                "top_temperature": top.parameters["temperature"],
                "rest_temperature": rest.parameters["temperature"],
            },
            evaluations=top.evaluations + rest.evaluations,
            boundaries={name: hit["temperature"] for name, hit in hits.items() if hit},
        )


def _log_probabilities(
    logits: NDArray[np.float64], top_temperature: float, rest_temperature: float
) -> NDArray[np.float64]:
    rows, top = np.arange(len(logits)), logits.argmax(axis=1)
    with np.errstate(over="ignore", under="ignore"):
        gaps = logits - logits[rows, top, None]
        gaps[rows, top] = -np.inf
        nearest = gaps.max(axis=1, keepdims=True)
        below = gaps - nearest  # 0 at the second class
        log_odds = np.maximum(nearest / top_temperature, MOST_NEGATIVE)
        log_odds += np.log(np.exp(below / top_temperature).sum(axis=1, keepdims=True))
        log_total = np.logaddexp(0.0, log_odds)
        shares = below / rest_temperature
        shares -= np.log(np.exp(shares).sum(axis=1, keepdims=True))
        logs = np.maximum(shares + (log_odds - log_total), MOST_NEGATIVE)
    logs[rows, top] = -log_total[:, 0]
    return logs


def _among_the_rest(
    logits: NDArray[np.float64], labels: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the samples whose top class is wrong, without that class: logits (m, k - 1), labels (m,)."""
    top = logits.argmax(axis=1)
    wrong = top != labels
    classes = np.arange(logits.shape[1])
    kept = classes != top[wrong, None]
    return logits[wrong][kept].reshape(-1, len(classes) - 1), (labels - (labels > top))[wrong]
