"""Distance of predictions to a known class posterior: raw, temperature-scaled, recovered by Psi (C21)."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from focalcal.calibration import metrics
from focalcal.calibration.logits_io import RunLogits, Split
from focalcal.theory.psi import log_psi

ROW_SUM_TOLERANCE = 1e-6

# Fits are chosen by log-loss, as in C21's TS_NLL; methods that fit nothing have no criterion.
COMPARED = (("none", None), ("ts", "nll"), ("fts", "nll"), ("psi", None))


def recovery_rows(logits: RunLogits, fits: Mapping[str, Any], bins: int) -> Iterator[dict[str, Any]]:
    """Yield metric rows of raw, temperature-scaled, focal-temperature-scaled and recovered predictions.

    `fits` is a run's fits.json. The metrics are the ECE with `bins` bins and, where the true posterior is
    known, Kullback-Leibler divergence and total variation to it. Methods that were not fitted have no rows.
    """
    fitted = {(fit["method"], fit["criterion"]): fit for fit in fits["fits"]}
    identity = {key: fits["run"][key] for key in ("dataset", "model", "loss", "seed")}
    for method, criterion in COMPARED:
        fit = fitted.get((method, criterion))
        if fit is None:
            continue
        parameters = {"gamma": fit["gamma"], "temperature": fit["temperature"]}
        for name, split in (("val", logits.val), ("test", logits.test)):
            log_probs = log_psi(split.logits, **parameters)
            for metric, value in _scores(log_probs, split, bins).items():
                row = {
                    "method": method,
                    "criterion": criterion,
                    "split": name,
                    "metric": metric,
                    "value": value,
                }
                yield {**identity, **parameters, **row}


def _scores(log_probs: np.ndarray, split: Split, bins: int) -> dict[str, float]:
    """Return the stage's metrics of one prediction."""
    scores = {f"ece_{bins}": metrics.ece(np.exp(log_probs), split.labels, bins)}
    if split.posterior is not None:
        scores["kl_posterior"] = kl_to_posterior(split.posterior, log_probs)
        scores["tv_posterior"] = total_variation_to_posterior(split.posterior, log_probs)
    return scores


def kl_to_posterior(posterior: ArrayLike, log_probs: ArrayLike) -> float:
    """Return the mean over rows of KL(posterior || probs) in nats (C21 section 5.2); shapes (n, k).

    Predictions come as logarithms, so that a probability too small for a float still has its finite price.
    A class with posterior 0 contributes 0.
    """
    posterior, log_probs = _checked_pair(posterior, log_probs)
    log_posterior = np.log(posterior, where=posterior > 0, out=np.zeros_like(posterior))
    terms = np.where(posterior > 0, posterior * (log_posterior - log_probs), 0.0)
    return float(terms.sum(axis=1).mean())


def total_variation_to_posterior(posterior: ArrayLike, log_probs: ArrayLike) -> float:
    """Return the mean over rows of half the absolute difference of posterior and probs; shapes (n, k)."""
    posterior, log_probs = _checked_pair(posterior, log_probs)
    return float(0.5 * np.abs(posterior - np.exp(log_probs)).sum(axis=1).mean())


def _checked_pair(posterior: ArrayLike, log_probs: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return both as float64 of one shape (n, k), each row of the posterior a distribution."""
    posterior, log_probs = np.asarray(posterior, np.float64), np.asarray(log_probs, np.float64)
    if posterior.shape != log_probs.shape or posterior.ndim != 2:
        raise ValueError(
            f"posterior has shape {posterior.shape} and log_probs {log_probs.shape}; both must be the same"
        )
    sums = posterior.sum(axis=1)
    if not (np.all(posterior >= 0) and np.allclose(sums, 1, rtol=0, atol=ROW_SUM_TOLERANCE)):
        raise ValueError(
            f"posterior must be non-negative with rows that sum to 1 within {ROW_SUM_TOLERANCE}; "
            f"its smallest value is {posterior.min()}, its row sums go from {sums.min()} to {sums.max()}"
        )
    return posterior, log_probs
