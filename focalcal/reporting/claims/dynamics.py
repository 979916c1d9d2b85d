"""Numbers that decide what the papers state of training, measured on the histories of runs trained here.

A public function is a check, as in `measured.py`. M20 shows 350 epochs, at whose 150th and 250th the learning
rate drops: what it says of a phase is measured only where the rate drops in steps.
"""

import numpy as np
import pandas as pd
from scipy import stats

from focalcal.reporting.claims.measured import (
    FEWEST_GAMMAS,
    Found,
    Measurements,
    focal_gamma,
    focal_share,
    largest_value,
)

DROP = 0.5
"""A learning rate that falls to this share of itself, or below, from one constant value to another, drops."""
BEGINNING = 0.1
"""The share of the epochs with which training begins."""
EARLY, LATE = 10 / 350, 200 / 350
"""The shares of the training after which M20 Fig. 4 compares gradient norms, except for epoch 100."""


def end_below_ce(runs: Measurements, quantity: str) -> Found:
    """Return the share of focal losses below cross-entropy in a quantity of the last epoch (M20 Fig. 3)."""
    last, column = _last(runs, quantity)
    # Models without misclassified samples have no value and are skipped.
    return focal_share(last, f"{column} of the last epoch below cross-entropy's")


def early_below_ce(runs: Measurements, quantity: str) -> Found:
    """Return the share of focal losses below cross-entropy in a quantity of the first tenth of the epochs."""
    values = runs.epochs(quantity)
    first = values[values.index <= max(1, BEGINNING * values.index.max())] if len(values) else values
    words = f"{values.columns.name}, mean of the first tenth of the epochs, below cross-entropy's"
    return focal_share(first.mean(), words)


def end_least(runs: Measurements, quantity: str, losses: str) -> Found:
    """Return the smallest value of a quantity of the last epoch over losses, which must all be there."""
    last, column = _last(runs, quantity)
    if not {*losses.split(",")} <= {*last.index}:
        return None
    chosen = last[losses.split(",")]
    return float(chosen.min()), f"{column} of the last epoch: {chosen.idxmin()}", len(chosen)


def training_gap(runs: Measurements) -> Found:
    """Return log-loss less entropy on training data in the last epoch, largest over the focal losses.

    The difference has the sign of the slope of log-loss in log(1/T) at T = 1: below 0, a temperature below 1
    lowers the log-loss, so that the network is underconfident there.
    """
    losses, entropies = _last(runs, "train_nll")[0], _last(runs, "train_entropy")[0]
    gaps = (losses - entropies).dropna()
    gaps = gaps[[name for name in gaps.index if focal_gamma(name)]]
    return largest_value(gaps, "log-loss less entropy on training data, nats")


def after_drop(runs: Measurements, loss: str, quantity: str) -> Found:
    """Return the change of a loss's quantity from the learning rate's first drop to the last epoch."""
    return _change(runs, loss, quantity, None)


def between_drops(runs: Measurements, loss: str, quantity: str) -> Found:
    """Return the change of a loss's quantity from the first to the second drop of the learning rate."""
    return _change(runs, loss, quantity, 1)


def less_after_drop(runs: Measurements, quantity: str) -> Found:
    """Return the share of focal losses whose quantity changes less than cross-entropy's after the drop."""
    phase = _phase(runs, quantity, None)
    if phase is None:
        return None
    change = phase.iloc[-1] - phase.iloc[0]
    return focal_share(change.dropna(), f"rise of {phase.columns.name} after the drop below cross-entropy's")


def epoch_trend(runs: Measurements, loss: str, quantity: str) -> Found:
    """Return Kendall's tau of a loss's quantity with the epoch."""
    values = runs.epochs(quantity).get(loss, pd.Series(dtype=float)).dropna()
    if len(values) < FEWEST_GAMMAS or np.ptp(values.to_numpy()) == 0:
        return None
    tau = stats.kendalltau(values.index, values).statistic
    return float(tau), f"Kendall's tau of {loss} with the epoch", len(values)


def gradient_fall(runs: Measurements) -> Found:
    """Return the share of focal losses whose median gradient norm falls faster than cross-entropy's.

    Compared are the epochs that correspond to M20's 10th and 200th of 350 (Fig. 4b and d).
    """
    norms = runs.epochs("gradient_norm_q50")
    if norms.empty:
        return None
    first, later = (norms.loc[: max(1, round(share * norms.index.max()))].iloc[-1] for share in (EARLY, LATE))
    words = "median gradient norm falls by a larger factor than cross-entropy's"
    return focal_share((later / first).dropna(), words)


def _last(runs: Measurements, quantity: str) -> tuple[pd.Series, str]:
    """Return a quantity of the last epoch by loss, and its column of history.csv."""
    values = runs.epochs(quantity)
    if values.empty:
        return pd.Series(dtype=float), quantity
    return values.iloc[-1].dropna(), values.columns.name


def _change(runs: Measurements, loss: str, quantity: str, until: int | None) -> Found:
    """Return the change of a loss's quantity over a phase."""
    phase = _phase(runs, quantity, until)
    if phase is None or loss not in phase:
        return None
    values = phase[loss].dropna()
    first, last = values.index[[0, -1]]
    ends = f"{values[first]:.3g} to {values[last]:.3g}"
    words = f"{phase.columns.name} of {loss} from epoch {first} to {last}: {ends}"
    return float(values[last] - values[first]), words, len(values)


def _phase(runs: Measurements, quantity: str, until: int | None) -> pd.DataFrame | None:
    """Return a quantity from the first epoch after the first drop to before the drop numbered `until`.

    None without such drops, or with fewer than two measured epochs.
    """
    values = runs.epochs(quantity)
    rates = runs.epochs("learning_rate")
    if values.empty or rates.empty:
        return None
    rate = rates.mean(axis=1).to_numpy()
    steady = np.isclose(rate[1:], rate[:-1])
    # A drop lies between two epochs that each have a neighbour with the same rate.
    drops = 2 + np.flatnonzero(steady[:-2] & steady[2:] & (rate[2:-1] <= DROP * rate[1:-2]))
    if len(drops) <= (until or 0):
        return None
    epochs = rates.index[drops]
    end = values.index.max() if until is None else epochs[until] - 1
    phase = values.loc[epochs[0] : end]
    return phase if len(phase) > 1 else None
