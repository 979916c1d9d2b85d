"""Posterior recovery of one run (C21): how good raw, temperature-scaled and recovered predictions are.

Distances are to the true class posterior where it is known, and to human label distributions where those
are given. Nothing is fitted here: temperatures come from the run's calibration, the gamma of Psi is the one
the model was trained with, and where that is not known Psi does not apply.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from focalcal.calibration import metrics
from focalcal.calibration.logits_io import RunLogits, Split
from focalcal.common.errors import UserError
from focalcal.theory.psi import log_psi

ROW_SUM_TOLERANCE = 1e-6
LARGEST_DEVIATION = 8.0
"""In standard errors: labels drawn from their posterior deviate further once in 10^14 files."""
FITTED = (("ts", "nll"), ("fts", "nll"), ("ts-focal", "focal"))
"""Methods of C21's comparison whose parameters the calibration stage fits, with the criterion they need."""
RECOVERED = {"psi": None, "ts-focal-psi": ("ts-focal", "focal")}
"""Methods that end with Psi at the training gamma, with the fit whose temperature comes first."""


@dataclass(frozen=True)
class Prediction:
    """A map from logits to probabilities, Psi^gamma(softmax(logits / temperature)), by its method's name."""

    method: str
    criterion: str | None
    gamma: float
    temperature: float


@dataclass(frozen=True)
class Recovery:
    """The result of `recover`."""

    rows: list[dict[str, Any]]
    """Tidy metric rows of both splits."""
    record: dict[str, Any]
    """For JSON: the run, what does not apply and why, each prediction's scores and reliability bins."""


def recover(
    logits: RunLogits,
    run: Mapping[str, Any],
    fits: Mapping[str, Any],
    bins: int,
    human: NDArray[np.float64] | None = None,
) -> Recovery:
    """Return scores of all predictions that apply to a run.

    `run` is {dataset, model, loss, seed, gamma}, gamma None where it is not known; `fits` is the run's
    fits.json; `bins` is the number of bins of ECE; `human` is float64 (n, k) for the test split or None.
    """
    for name, split in (("val", logits.val), ("test", logits.test)):
        check_posterior(split, f"run {run['dataset']}/{run['model']}/{run['loss']}: {name}_posterior")
    applied, skipped = predictions(run, fits)
    rows: list[dict[str, Any]] = []
    described = []
    for prediction in applied:
        on_val = log_psi(logits.val.logits, prediction.gamma, prediction.temperature)
        rows.extend(_rows(run, prediction, "val", _tidy(_scores(on_val, logits.val, bins), bins)))
        on_test = log_psi(logits.test.logits, prediction.gamma, prediction.temperature)
        scores = _scores(on_test, logits.test, bins)
        if human is not None:
            scores |= _distances(human, on_test, "human")
        rows.extend(_rows(run, prediction, "test", _tidy(scores, bins)))
        reliability = reliability_bins(np.exp(on_test), logits.test.labels, bins)
        described.append({**vars(prediction), "scores": scores, "reliability": reliability})
    record = {
        "run": dict(run),
        "bins": bins,
        "test_samples": len(logits.test.labels),
        "predictions": described,
        "not_applicable": skipped,
    }
    return Recovery(rows, record)


def predictions(
    run: Mapping[str, Any], fits: Mapping[str, Any]
) -> tuple[list[Prediction], list[dict[str, str]]]:
    """Return the predictions that apply to a run, and method and reason of those that do not."""
    fitted = {(fit["method"], fit["criterion"]): fit for fit in fits["fits"]}
    applied, skipped = [Prediction("none", None, 0.0, 1.0)], []
    for method, criterion in FITTED:
        fit = fitted.get((method, criterion))
        if fit is not None:
            applied.append(Prediction(method, criterion, fit["gamma"], fit["temperature"]))
        else:
            skipped.append({"method": method, "reason": _why_not_fitted(method, criterion, fits)})
    for method, first in RECOVERED.items():
        fit = fitted.get(first) if first else {"temperature": 1.0}
        if run["gamma"] is None:
            skipped.append({"method": method, "reason": unknown_gamma(run["loss"])})
        elif fit is None:
            skipped.append({"method": method, "reason": _why_not_fitted(*first, fits)})
        else:
            criterion = first[1] if first else None
            applied.append(Prediction(method, criterion, float(run["gamma"]), fit["temperature"]))
    return applied, skipped


def unknown_gamma(loss: str) -> str:
    """Return why Psi does not apply to a model trained with such a loss."""
    return f"Psi does not apply: loss {loss!r} is not focal loss of one known gamma"


def reliability_bins(probs: NDArray[np.float64], labels: NDArray[np.int64], bins: int) -> dict[str, list]:
    """Return samples, mean confidence and accuracy of each of `bins` bins `(low, high]`, None where empty."""
    count, *means = metrics.reliability(probs.max(axis=1), probs.argmax(axis=1) == labels, bins)
    confidence, accuracy = (
        [float(mean) if size else None for mean, size in zip(values, count, strict=True)] for values in means
    )
    return {"count": count.tolist(), "confidence": confidence, "accuracy": accuracy}


def check_posterior(split: Split, name: str) -> None:
    """Raise a UserError that begins with `name` unless the split's posterior, if any, fits its labels.

    Rows must be distributions. A posterior in another order than the labels is found by its probability of
    the label, which has the mean sum_k p_k^2 over labels drawn from p.
    """
    if split.posterior is None:
        return
    try:
        posterior, _ = _checked_pair(split.posterior, split.posterior)
    except ValueError as error:
        raise UserError(f"{name}: {error}; repair the file") from None
    squares = np.square(posterior).sum(axis=1)
    surplus = posterior[np.arange(len(posterior)), split.labels] - squares
    variance = float(((posterior**3).sum(axis=1) - squares**2).clip(min=0).sum())
    allowed = LARGEST_DEVIATION * np.sqrt(variance) + ROW_SUM_TOLERANCE * len(posterior)
    if abs(surplus.sum()) > allowed:
        raise UserError(
            f"{name} gives the labels a mean probability of {(surplus + squares).mean():.4f}; allowed: "
            f"within {allowed / len(posterior):.4f} of {squares.mean():.4f}, which labels drawn from it "
            f"have; bring its rows into the order of the samples"
        )


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


def _scores(log_probs: NDArray[np.float64], split: Split, bins: int) -> dict[str, float]:
    """Return error, ECE and, where the posterior is known, the distances to it."""
    probs = np.exp(log_probs)
    scores = {
        "error": metrics.error(probs, split.labels),
        "ece": metrics.ece(probs, split.labels, bins),
    }
    if split.posterior is not None:
        scores |= _distances(split.posterior, log_probs, "posterior")
    return scores


def _distances(truth: NDArray[np.float64], log_probs: NDArray[np.float64], name: str) -> dict[str, float]:
    return {
        f"kl_{name}": kl_to_posterior(truth, log_probs),
        f"tv_{name}": total_variation_to_posterior(truth, log_probs),
    }


def _tidy(scores: Mapping[str, float], bins: int) -> dict[str, float]:
    """Return the scores under names that the calibration stage does not use: errors are already there."""
    renamed = {f"ece_{bins}" if name == "ece" else name: value for name, value in scores.items()}
    del renamed["error"]
    return renamed


def _rows(
    run: Mapping[str, Any], prediction: Prediction, split: str, scores: Mapping[str, float]
) -> Iterator[dict[str, Any]]:
    identity = {key: run[key] for key in ("dataset", "model", "loss", "seed")}
    for metric, value in scores.items():
        yield {**identity, **vars(prediction), "split": split, "metric": metric, "value": value}


def _why_not_fitted(method: str, criterion: str, fits: Mapping[str, Any]) -> str:
    """Return the calibration stage's own reason, or that the configuration does not ask for the fit."""
    reasons: Sequence[Mapping[str, str]] = fits.get("not_applicable", ())
    for entry in reasons:
        if entry["method"] == method:
            return entry["reason"]
    return f"calibration.methods lacks {method!r} or calibration.criteria lacks {criterion!r}"


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
