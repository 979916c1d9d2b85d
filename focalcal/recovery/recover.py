"""Posterior recovery of one run (C21): how good raw, temperature-scaled and recovered predictions are.

Distances are to the true class posterior if it is known, and to human label distributions if they are given.
Nothing is fitted here: every calibrator is one that the run's calibration fitted and saved. Its parameters
are a few numbers, while its predictions for 25,000 samples of a thousand classes would take 200 MB.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from focalcal.calibration import metrics
from focalcal.calibration.calibrators import AS_TRAINED, load_calibrator
from focalcal.calibration.catalogue import METHODS
from focalcal.calibration.files.logits_io import RunLogits, Split
from focalcal.calibration.files.tidy import score_rows
from focalcal.calibration.scores.binning import reliability_bins
from focalcal.calibration.scores.predictions import Predictions
from focalcal.common.arrays import matrix, probability_matrix
from focalcal.common.errors import UserError
from focalcal.theory.psi import log_psi
from focalcal.theory.thresholds import confidence_region

ROW_SUM_TOLERANCE = 1e-6
REGIONS = ("under", "over", "ambiguous")
LARGEST_DEVIATION = 8.0
"""In standard errors: labels drawn from their posterior deviate further once in 10^14 files."""
COMPARED = {
    "none": None,
    "ts": "nll",
    "fts": "nll",
    "ts-focal": "focal",
    "psi": None,
    "ts-focal-psi": "focal",
}
"""Calibrators of C21's comparison, each with the criterion that it was fitted by."""


@dataclass(frozen=True)
class RecoveryResult:
    """The result of `recover`."""

    rows: list[dict[str, Any]]
    """Tidy metric rows of both splits."""
    record: dict[str, Any]
    """For JSON: the run, what does not apply and why, each prediction's metrics and reliability bins."""


def recover(
    logits: RunLogits,
    run: Mapping[str, Any],
    fits: Mapping[str, Any],
    bins: int,
    human: NDArray[np.float64] | None = None,
) -> RecoveryResult:
    """Return metrics of all predictions that apply to a run, and its diagnosis as metric rows.

    `run` is {dataset, model, loss, seed, gamma}, gamma None if it is not known; `fits` is the run's
    fits.json; `bins` is the number of bins of ECE; `human` is float64 (n, k) for the test split or None.
    """
    for name, split in (("val", logits.val), ("test", logits.test)):
        check_posterior(split, f"run {run['dataset']}/{run['model']}/{run['loss']}: {name}_posterior")
    applied, skipped = compared_fits(fits)
    rows: list[dict[str, Any]] = []
    described = []
    for fit in applied:
        for name, split, people in (("val", logits.val, None), ("test", logits.test, human)):
            log_probs = load_calibrator(fit).predict_log_proba(split.logits)
            predictions = Predictions.from_logs(log_probs, split.labels)
            ece = metrics.ece(predictions, split.labels, bins)
            distances = {}
            for kind, truth in (("posterior", split.posterior), ("human", people)):
                if truth is not None:
                    distances[f"kl_{kind}"] = kl_to_posterior(truth, log_probs)
                    distances[f"tv_{kind}"] = total_variation_to_posterior(truth, log_probs)
            # Names that the calibration stage does not use: no metric may be there twice.
            rows.extend(score_rows(run, fit, name, {f"ece_{bins}": ece, **distances}))
        # The record describes the test split, which the loop above ends with.
        scores = {"error": metrics.error(predictions, split.labels), "ece": ece, **distances}
        reliability = reliability_bins(predictions.confidence, predictions.correct, bins)
        described.append({**fit, "scores": scores, "reliability": reliability})
    if run["gamma"] is not None and run["gamma"] > 0:
        shares = confidence_shares(logits.test.logits, run["gamma"], logits.test.posterior)
        rows.extend(score_rows(run, AS_TRAINED, "test", shares))
    record = {
        "run": dict(run),
        "bins": bins,
        "test_samples": len(logits.test.labels),
        "predictions": described,
        "not_applicable": skipped,
    }
    return RecoveryResult(rows, record)


def compared_fits(fits: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Return method, criterion and parameters of what is compared, and why others are missing."""
    stored = {
        (fit["method"], fit["criterion"]): {key: fit[key] for key in AS_TRAINED} for fit in fits["fits"]
    }
    # The calibration stage says why it did not fit a method that the configuration asks for.
    reasons = {entry["method"]: entry["reason"] for entry in fits.get("not_applicable", ())}
    skipped = []
    for method, criterion in COMPARED.items():
        if (method, criterion) not in stored:
            missing = f"calibration.methods lacks {method!r}"
            if METHODS[method].criteria is None:
                missing += f" or calibration.criteria lacks {criterion!r}"
            skipped.append({"method": method, "reason": reasons.get(method, missing)})
    return [stored[key] for key in COMPARED.items() if key in stored], skipped


def check_posterior(split: Split, name: str) -> None:
    """Raise a UserError that begins with `name` unless the split's posterior, if any, fits its labels.

    Rows must be distributions. A posterior in another order than the labels is detected by its probability of
    the label, whose mean over labels drawn from p is sum_k p_k^2.
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

    Predictions are logarithms, so that the divergence stays finite where a probability underflows. A class
    with posterior 0 contributes 0.
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
    posterior = probability_matrix("posterior", posterior, ROW_SUM_TOLERANCE, fewest=1)
    log_probs = matrix("log_probs", log_probs)
    if posterior.shape != log_probs.shape:
        raise ValueError(
            f"log_probs has shape {log_probs.shape}; allowed: that of posterior, {posterior.shape}"
        )
    return posterior, log_probs


def confidence_shares(
    logits: ArrayLike, gamma: float, posterior: NDArray[np.float64] | None = None
) -> dict[str, float]:
    """Return shares of the samples whose largest probability q is below or above what it should be.

    `logits` (n, k) are of a network trained with focal loss of `gamma` > 0. By C21 Theorem 8's regions of q:
    `region_under`, `region_over`, `region_ambiguous` (either is possible). By comparing max q with
    max Psi(q), section 5.1: `psi_under`, `psi_over`. With the true `posterior` (n, k), by Definition 7:
    `true_under`, `true_over`, and `psi_right`, the share where Psi agrees with the posterior. Uniform
    predictions, for which all agree, count as neither.
    """
    logits = matrix("logits", logits, fewest=1)
    uniform = np.ptp(logits, axis=1) == 0
    raw = log_psi(logits, 0.0).max(axis=1)
    region = confidence_region(np.exp(raw), gamma)
    # Logarithms still differ where the largest probabilities both round to 1.
    by_psi = _signs(raw, log_psi(logits, gamma).max(axis=1), uniform)
    masks = {f"region_{name}": (region == name) & ~uniform for name in REGIONS}
    masks |= {"psi_under": by_psi < 0, "psi_over": by_psi > 0}
    if posterior is not None:
        by_truth = _signs(np.exp(raw), posterior.max(axis=1), uniform)
        masks |= {"true_under": by_truth < 0, "true_over": by_truth > 0, "psi_right": by_psi == by_truth}
    return {name: float(np.mean(mask)) for name, mask in masks.items()}


def _signs(confidence: NDArray, reference: NDArray, uniform: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return -1 where the confidence is too low, 1 where it is too high, 0 where they agree."""
    return np.where(uniform, 0.0, np.sign(confidence - reference))
