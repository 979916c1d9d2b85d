"""Proper scores, calibration errors and accuracy of predicted class probabilities; proper scores come first.

All metrics take `probs` of shape (n, k) and integer `labels` of shape (n,), work in float64 and return
Python floats: fractions, never per cent; NaN where a metric is undefined. The predicted class is the first
class with the largest probability, and its probability is the confidence.

A new metric is one function `(probs, labels)` with one declaration above it (`catalogue.Metric`). It begins
with `Predictions.of(probs, labels)`, since a `Predictions` may stand in place of `probs`: metrics of the same
predictions then share what they compute. If it has the arguments `bins` or `variant`, it gets those of the
configuration. `binning.py` defines the bins.
"""

import importlib
import inspect
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from focalcal.calibration.catalogue import CRITERIA, METRICS, metric
from focalcal.calibration.scores.binning import Binned, bin_gaps, check_binning, split_sizes
from focalcal.calibration.scores.predictions import Predictions, Probs
from focalcal.calibration.scores.smooth_error import smooth_calibration_error

CONFIDENT = 0.99


def metric_value(name: str, predictions: Predictions, bins: int, variant: str) -> float:
    """Return a metric of the catalogue with the configured `bins` and `variant`, if it takes those."""
    function = getattr(importlib.import_module(METRICS[name].module), name)
    options = {"bins": bins, "variant": variant}
    taken = {key: options[key] for key in _argument_names(function) if key in options}
    return function(predictions, predictions.labels, **taken)


@cache
def _argument_names(function: Callable[..., float]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def criterion_value(
    criterion: str | None, log_probs: NDArray[np.float64], labels: ArrayLike, bins: int, variant: str
) -> float:
    """Return one of `CRITERIA` of log-probabilities (n, k), by definition: the reference for the kernels."""
    predictions = Predictions.from_logs(log_probs, labels)
    if criterion not in CRITERIA:
        raise ValueError(f"criterion is {criterion!r}; expected one of {', '.join(CRITERIA)}")
    return metric_value(criterion, predictions, bins, variant)


def focal_loss_of_logs(log_probs: NDArray[np.float64], labels: NDArray[np.int64], gamma: float) -> float:
    """Return the mean focal loss `-(1-p)^gamma log p` of the labels' probabilities p (C21 Eq. (5))."""
    log_true = log_probs[np.arange(len(labels)), labels]
    return float(np.mean(-((-np.expm1(log_true)) ** gamma) * log_true) + 0.0)


@metric(label="Log-loss", criterion=True)
def nll(probs: Probs, labels: ArrayLike) -> float:
    """Return the negative log-likelihood in nats, infinite if a label has probability 0.

    Parameters
    ----------
    probs : array (n, k) or Predictions
        Probabilities, rows summing to 1.
    labels : array (n,)
        Integer classes 0..k-1.

    Returns
    -------
    float
        0 or more; lower is better.

    Examples
    --------
    >>> round(nll([[0.9, 0.1], [0.6, 0.4]], [0, 1]), 4)
    0.5108
    """
    return float(-np.mean(Predictions.of(probs, labels).label_logs) + 0.0)


@metric(label="Brier score")
def brier(probs: Probs, labels: ArrayLike) -> float:
    """Return the mean squared distance to the one-hot label, summed over classes.

    Parameters
    ----------
    probs : array (n, k) or Predictions
        Probabilities, rows summing to 1.
    labels : array (n,)
        Integer classes 0..k-1.

    Returns
    -------
    float
        0 to 2; lower is better.

    Examples
    --------
    >>> round(brier([[0.9, 0.1], [0.6, 0.4]], [0, 1]), 4)
    0.37
    """
    predictions = Predictions.of(probs, labels)
    return float(np.mean(np.sum(predictions.residuals**2, axis=1)))


@metric(label="Log-loss: calibration part")
def nll_calibration(probs: Probs, labels: ArrayLike) -> float:
    """Return the part of the log-loss that recalibration removes: `nll` minus `nll_refinement`.

    Held-out folds make it negative by chance for predictions that no temperature improves.
    """
    return nll(probs, labels) - nll_refinement(probs, labels)


@metric(label="Log-loss: refinement part")
def nll_refinement(probs: Probs, labels: ArrayLike) -> float:
    """Return the log-loss after recalibration, by `refinement.held_out_scores`."""
    return Predictions.of(probs, labels).held_out_scores[0]


@metric(label="Brier score: calibration part")
def brier_calibration(probs: Probs, labels: ArrayLike) -> float:
    """Return the part of the Brier score that recalibration removes: `brier` minus `brier_refinement`."""
    return brier(probs, labels) - brier_refinement(probs, labels)


@metric(label="Brier score: refinement part")
def brier_refinement(probs: Probs, labels: ArrayLike) -> float:
    """Return the Brier score after recalibration by log-loss, by `refinement.held_out_scores`."""
    return Predictions.of(probs, labels).held_out_scores[1]


@metric(label="ECE", factor=100, decimals=2, criterion=True)
def ece(
    probs: Probs, labels: ArrayLike, bins: int = 15, binning: str = "width", variant: str = "split"
) -> float:
    """Return the expected calibration error: bin-weighted mean of |accuracy - mean confidence|.

    Parameters
    ----------
    probs : array (n, k) or Predictions
        Probabilities, rows summing to 1.
    labels : array (n,)
        Integer classes 0..k-1.
    bins : int
        Number of bins of the confidence.
    binning : {"width", "mass"}
        Bins of equal width or of equal numbers of samples.
    variant : {"split", "authors"}
        Definition of the bins of equal mass.

    Returns
    -------
    float
        0 to 1; lower is better.

    Examples
    --------
    >>> round(ece([[0.9, 0.1], [0.6, 0.4]], [0, 1]), 4)
    0.35
    """
    predictions = Predictions.of(probs, labels)
    _, gaps = predictions.bin_gaps(bins, binning, variant)
    return float(np.sum(np.abs(gaps)) / len(predictions.labels))


@metric(label="ECE if calibrated", factor=100, decimals=2, reference=True)
def ece_perfect(probs: Probs, labels: ArrayLike, bins: int = 15) -> float:
    """Return the ECE to expect of these confidences if each were the chance to be correct.

    Binned errors of finitely many samples exceed 0 even then. The mean over `RESAMPLES` draws, with a fixed
    seed, of whether each prediction is correct.
    """
    predictions = Predictions.of(probs, labels)
    sizes, _ = predictions.bin_gaps(bins, "width", "split")
    return _ece_if_calibrated(predictions, sizes)


@metric(label="AdaECE", factor=100, decimals=2, criterion=True)
def adaece(probs: Probs, labels: ArrayLike, bins: int = 15, variant: str = "split") -> float:
    """Return the expected calibration error with bins of equal mass; arguments as for `ece`."""
    return ece(probs, labels, bins, "mass", variant)


@metric(label="AdaECE, M20's bins", factor=100, decimals=2)
def adaece_authors(probs: Probs, labels: ArrayLike, bins: int = 15) -> float:
    """Return AdaECE with the bins of M20's released code, as its tables print it."""
    return ece(probs, labels, bins, "mass", "authors")


@metric(label="AdaECE if calibrated", factor=100, decimals=2, reference=True)
def adaece_perfect(probs: Probs, labels: ArrayLike, bins: int = 15) -> float:
    """Return the AdaECE (variant "split") to expect if each confidence were the chance to be correct."""
    predictions = Predictions.of(probs, labels)
    return _ece_if_calibrated(predictions, split_sizes(len(predictions.labels), bins))


@metric(label="Classwise ECE", factor=100, decimals=2)
def classwise_ece(
    probs: Probs, labels: ArrayLike, bins: int = 15, binning: str = "width", variant: str = "split"
) -> float:
    """Return the mean over all k classes of the calibration error of that class's probability.

    Parameters
    ----------
    probs : array (n, k) or Predictions
        Probabilities, rows summing to 1.
    labels : array (n,)
        Integer classes 0..k-1.
    bins, binning, variant
        As for `ece`; the bins are those of each class's probability.

    Returns
    -------
    float
        0 to 1; lower is better.

    Examples
    --------
    >>> round(classwise_ece([[0.9, 0.1], [0.6, 0.4]], [0, 1]), 4)
    0.35
    """
    predictions = Predictions.of(probs, labels)
    check_binning(bins, binning, variant)
    columns = predictions.probs
    if binning == "width":
        total = np.sum(np.abs(predictions.class_bins(bins).gaps))
    else:
        total = sum(
            np.sum(np.abs(bin_gaps(column, predictions.labels == number, bins, binning, variant)[1]))
            for number, column in enumerate(columns.T)
        )
    return float(total / columns.size)


@metric(label="MCE", factor=100, decimals=2)
def mce(
    probs: Probs, labels: ArrayLike, bins: int = 15, binning: str = "width", variant: str = "split"
) -> float:
    """Return the maximum calibration error: the largest |accuracy - mean confidence| of a bin.

    Empty bins do not count.

    Parameters
    ----------
    probs : array (n, k) or Predictions
        Probabilities, rows summing to 1.
    labels : array (n,)
        Integer classes 0..k-1.
    bins, binning, variant
        As for `ece`.

    Returns
    -------
    float
        0 to 1; lower is better.

    Examples
    --------
    >>> round(mce([[0.9, 0.1], [0.6, 0.4]], [0, 1]), 4)
    0.6
    """
    predictions = Predictions.of(probs, labels)
    counts, gaps = predictions.bin_gaps(bins, binning, variant)
    filled = counts > 0
    return float(np.max(np.abs(gaps[filled]) / counts[filled])) if filled.any() else 0.0


@metric(label="Debiased ECE, top label, l2", factor=100, decimals=2)
def debiased_ece(probs: Probs, labels: ArrayLike, bins: int = 15) -> float:
    """Return the debiased l2 calibration error of the confidence (Kumar et al. 2019, Sec. 5).

    The square root of the bin-weighted mean of (accuracy - mean confidence)^2 minus its variance, estimated
    by accuracy (1 - accuracy) / (samples - 1); 0 where that is negative. Bins of equal mass.
    """
    squares = debiased_squares(Predictions.of(probs, labels).mass_bins(bins))
    return float(np.sqrt(max(0.0, np.sum(squares))))


@metric(label="Debiased ECE, classwise, l2", factor=100, decimals=2)
def classwise_debiased_ece(probs: Probs, labels: ArrayLike, bins: int = 15) -> float:
    """Return the debiased l2 error of each class's probability, squares averaged over classes.

    As `debiased_ece`, the marginal error of Kumar et al. (2019), with the bins of equal width of
    `classwise_ece`.
    """
    squares = debiased_squares(Predictions.of(probs, labels).class_bins(bins))
    return float(np.sqrt(max(0.0, np.sum(squares))))


@metric(label="Smooth ECE", factor=100, decimals=2)
def smece(probs: Probs, labels: ArrayLike) -> float:
    """Return the smooth calibration error of the confidence (Blasiok & Nakkiran 2023), free of bins."""
    predictions = Predictions.of(probs, labels)
    return smooth_calibration_error(predictions.confidence, predictions.correct)


@metric(label="AURC", factor=100, decimals=2)
def aurc(probs: Probs, labels: ArrayLike) -> float:
    """Return the area under the risk-coverage curve (Geifman & El-Yaniv 2017).

    The mean over m = 1..n of the error among the m most confident samples. Samples of equal confidence come
    in random order: the expected value is returned.
    """
    predictions = Predictions.of(probs, labels)
    order = predictions.order[::-1]
    falling, missed = predictions.confidence[order], np.cumsum(~predictions.correct[order])
    # The last sample of each run of equal confidences; within a run expected errors rise linearly.
    ends = np.flatnonzero(np.append(falling[1:] != falling[:-1], True)) + 1
    taken = np.arange(1, len(order) + 1)
    errors = np.interp(taken, np.append(0, ends), np.append(0, missed[ends - 1]))
    return float(np.mean(errors / taken))


@metric(label="Accuracy", factor=100, decimals=1, higher_is_better=True)
def accuracy(probs: Probs, labels: ArrayLike) -> float:
    """Return the share of samples whose predicted class is their label.

    Parameters
    ----------
    probs : array (n, k) or Predictions
        Probabilities, rows summing to 1.
    labels : array (n,)
        Integer classes 0..k-1.

    Returns
    -------
    float
        0 to 1; higher is better.

    Examples
    --------
    >>> accuracy([[0.9, 0.1], [0.6, 0.4]], [0, 1])
    0.5
    """
    return float(np.mean(Predictions.of(probs, labels).correct))


@metric(label="Error", factor=100, decimals=2)
def error(probs: Probs, labels: ArrayLike) -> float:
    """Return the share of misclassified samples."""
    return float(np.mean(~Predictions.of(probs, labels).correct))


@metric(label="Share above 0.99 confidence", factor=100, decimals=2, higher_is_better=True)
def s99_share(probs: Probs, labels: ArrayLike, threshold: float = CONFIDENT) -> float:
    """Return the share of samples with confidence above `threshold` (M20 Table 6)."""
    return float(np.mean(Predictions.of(probs, labels).confidence > threshold))


@metric(label="Accuracy above 0.99 confidence", factor=100, decimals=2, higher_is_better=True)
def s99_accuracy(probs: Probs, labels: ArrayLike, threshold: float = CONFIDENT) -> float:
    """Return the accuracy of samples with confidence above `threshold`, NaN if there are none."""
    predictions = Predictions.of(probs, labels)
    confident = predictions.confidence > threshold
    return float(np.mean(predictions.correct[confident])) if confident.any() else float("nan")


def debiased_squares(binned: Binned) -> NDArray[np.float64]:
    """Return each bin's share of the squared error, debiased; the last axis is that of bins.

    A bin with fewer than two samples counts 0, since its variance is unknown.
    """
    sizes = np.maximum(binned.counts, 2)
    rates = binned.hits / sizes
    squares = (binned.gaps / sizes) ** 2 - rates * (1 - rates) / (sizes - 1)
    shares = binned.counts / binned.counts.sum(axis=-1, keepdims=True)
    return np.where(binned.counts > 1, shares * squares, 0.0)


def _ece_if_calibrated(predictions: Predictions, sizes: NDArray[np.int64]) -> float:
    """Return the mean ECE over draws of outcomes; bins of these sizes divide the sorted confidences."""
    confidence = predictions.confidence[predictions.order]
    filled = sizes[sizes > 0]
    starts = np.cumsum(filled) - filled
    hits = np.add.reduceat(predictions.drawn_hits, starts, axis=1, dtype=np.int64)
    gaps = np.add.reduceat(confidence, starts) - hits
    return float(np.abs(gaps).sum() / hits.shape[0] / len(confidence))
