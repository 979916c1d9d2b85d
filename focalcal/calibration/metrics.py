"""Proper scores, calibration errors and accuracy of predicted class probabilities; proper scores come first.

All metrics take `probs` of shape (n, k) and integer `labels` of shape (n,), work in float64 and return
Python floats: fractions, never per cent; NaN where a metric is undefined. The predicted class is the first
class with the largest probability, and its probability is the confidence.

A new metric is one function `(probs, labels)` with one declaration above it (`catalogue.Metric`). It begins
with `Predictions.of(probs, labels)`, since a `Predictions` may stand in place of `probs`: metrics of the same
predictions then share what they compute. If it has the arguments `bins` or `variant`, it gets those of the
configuration.

Binning, where a function takes it:
- "width": `bins` bins of equal width, `(low, high]`; a probability of exactly 0 joins the first one.
- "mass": bins of (nearly) equal numbers of samples, in one of two variants. "split" sorts the samples by
  confidence, ties in sample order, and cuts the sequence as `np.array_split` does (fewer samples than bins:
  one sample per bin). "authors" is the definition in the code released with M20, whose edges interpolate the
  sorted confidences at `linspace(0, n, bins + 1)` and take `(low, high]`: the smallest confidence, and
  everything tied with it, is never counted.
"""

import importlib
import inspect
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from focalcal.calibration.catalogue import CRITERIA, METRICS, metric
from focalcal.calibration.refinement import held_out_scores
from focalcal.calibration.smooth_error import smooth_calibration_error

BINNINGS = ("width", "mass")
MASS_VARIANTS = ("split", "authors")
ROW_SUM_TOLERANCE = 1e-3
CONFIDENT = 0.99
LEAST_LOG = -700.0
"""Logarithm that stands for those of probabilities below it where a finite one is needed."""
RESAMPLES = 100
"""Draws of outcomes behind the errors of perfectly calibrated predictions."""
EDGE_ROUNDING = 2e-12
"""Confidences within this relative distance of a bin edge, such as 1/2 for two tied classes, count as lying
on it. Twice the largest error of the fast kernels, so that they bin as the definitions do."""


class Predictions:
    """Predicted probabilities (n, k) of labelled samples; what several metrics need is computed once."""

    def __init__(self, probs: ArrayLike, labels: ArrayLike) -> None:
        self.probs, self.labels = checked(probs, labels)

    @classmethod
    def from_logs(cls, log_probs: NDArray[np.float64], labels: ArrayLike) -> Self:
        """Return predictions from log-probabilities (n, k); log-loss is finite where `probs` underflow."""
        with np.errstate(under="ignore"):
            predictions = cls(np.exp(log_probs), labels)
        # These take the place of logarithms of probabilities that may have rounded to 0.
        predictions.label_logs = log_probs[predictions.rows, predictions.labels]
        finite = bool(log_probs.min() >= LEAST_LOG)
        predictions.finite_logs = log_probs if finite else np.maximum(log_probs, LEAST_LOG)
        return predictions

    @classmethod
    def of(cls, probs: "ArrayLike | Predictions", labels: ArrayLike) -> "Predictions":
        """Return `probs` if it is a `Predictions` already, else the predictions of both arrays."""
        return probs if isinstance(probs, Predictions) else cls(probs, labels)

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """Return the numbers of the samples (n,)."""
        return np.arange(len(self.labels))

    @cached_property
    def label_logs(self) -> NDArray[np.float64]:
        """Return the logarithm of each label's probability (n,)."""
        with np.errstate(divide="ignore"):
            return np.log(self.probs[self.rows, self.labels])

    @cached_property
    def finite_logs(self) -> NDArray[np.float64]:
        """Return the log-probabilities (n, k), those of probability 0 as `LEAST_LOG`."""
        return np.log(np.maximum(self.probs, np.exp(LEAST_LOG)))

    @cached_property
    def held_out_scores(self) -> tuple[float, float]:
        """Return log-loss and Brier score after recalibration on held-out folds."""
        return held_out_scores(self.finite_logs, self.labels)

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Return the numbers of the samples by rising confidence, ties in sample order (n,)."""
        return np.argsort(self.confidence, kind="stable")

    @cached_property
    def predicted(self) -> NDArray[np.int64]:
        """Return the predicted classes (n,)."""
        return self.probs.argmax(axis=1)

    @cached_property
    def confidence(self) -> NDArray[np.float64]:
        """Return the probabilities of the predicted classes (n,)."""
        return self.probs[self.rows, self.predicted]

    @cached_property
    def correct(self) -> NDArray[np.bool_]:
        """Return whether the predicted class is the label (n,)."""
        return self.predicted == self.labels

    @cached_property
    def _class_bins(self) -> dict[int, "Binned"]:
        return {}

    def class_bins(self, bins: int) -> "Binned":
        """Return each class's probability in bins of equal width: class c has bins c * bins and following."""
        if bins not in self._class_bins:
            total = bins * self.probs.shape[1]
            index = (width_index(self.probs, bins) + np.arange(0, total, bins)).ravel()
            self._class_bins[bins] = Binned(
                counts=np.bincount(index, minlength=total),
                gaps=np.bincount(index, _residuals(self).ravel(), total),
                hits=np.bincount(index[self.rows * self.probs.shape[1] + self.labels], minlength=total),
            )
        return self._class_bins[bins]

    def mass_bins(self, bins: int) -> "Binned":
        """Return the confidences in bins of equal mass, variant "split"."""
        sizes = _split_sizes(len(self.labels), bins)
        index = np.repeat(np.arange(bins), sizes)
        correct = self.correct[self.order]
        gaps = np.bincount(index, self.confidence[self.order] - correct, bins)
        return Binned(sizes, gaps, np.bincount(index, correct, bins))


@dataclass(frozen=True)
class Binned:
    """Predicted chances of events, in bins: their number, the sum of chance minus outcome, the events."""

    counts: NDArray[np.int64]
    gaps: NDArray[np.float64]
    hits: NDArray[np.floating]


Probs = ArrayLike | Predictions
"""Probabilities (n, k) whose rows sum to 1, or the predictions that hold them."""


def metric_value(name: str, predictions: Predictions, bins: int, variant: str) -> float:
    """Return a metric of the catalogue with the configured `bins` and `variant`, if it takes those."""
    function = getattr(importlib.import_module(METRICS[name].module), name)
    options = {"bins": bins, "variant": variant}
    taken = inspect.signature(function).parameters.keys() & options.keys()
    return function(predictions, predictions.labels, **{key: options[key] for key in taken})


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
    return float(np.mean(np.sum(_residuals(predictions) ** 2, axis=1)))


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
    _, gaps = bin_gaps(predictions.confidence, predictions.correct, bins, binning, variant)
    return float(np.sum(np.abs(gaps)) / len(predictions.labels))


@metric(label="ECE if calibrated", factor=100, decimals=2, reference=True)
def ece_perfect(probs: Probs, labels: ArrayLike, bins: int = 15) -> float:
    """Return the ECE to expect of these confidences if each were the chance to be correct.

    Binned errors of finitely many samples exceed 0 even then. The mean over `RESAMPLES` draws, with a fixed
    seed, of whether each prediction is correct.
    """
    predictions = Predictions.of(probs, labels)
    sizes = np.bincount(width_index(predictions.confidence, bins), minlength=bins)
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
    return _ece_if_calibrated(predictions, _split_sizes(len(predictions.labels), bins))


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
    counts, gaps = bin_gaps(predictions.confidence, predictions.correct, bins, binning, variant)
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


def inner_edges(bins: int) -> NDArray[np.float64]:
    """Return the `bins - 1` edges between bins of equal width, each just above where it is meant to be."""
    return np.linspace(0.0, 1.0, bins + 1)[1:-1] * (1 + EDGE_ROUNDING)


def width_index(values: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
    """Return the number of the bin of equal width, `(low, high]`, of each value."""
    edges = inner_edges(bins)
    index = np.zeros(values.shape, dtype=np.int64)
    # Most probabilities are in the first bin where there are many classes.
    above = values > (edges[0] if bins > 1 else np.inf)
    index[above] = np.searchsorted(edges, values[above], side="left")
    return index


def reliability_bins(
    confidence: NDArray[np.float64], correct: NDArray[np.bool_], bins: int
) -> dict[str, list]:
    """Return count, mean confidence and accuracy of each bin `(low, high]` of equal width, None if empty."""
    index = width_index(confidence, bins)
    count = np.bincount(index, minlength=bins)
    found: dict[str, list] = {"count": count.tolist()}
    for name, values in (("confidence", confidence), ("accuracy", correct)):
        sums = np.bincount(index, values, bins)
        found[name] = [float(total / size) if size else None for total, size in zip(sums, count, strict=True)]
    return found


def equal_mass_edges(confidences: NDArray[np.float64], bins: int) -> NDArray[np.float64]:
    """Return the `bins + 1` edges of M20's released equal-mass binning ("authors")."""
    count = len(confidences)
    return np.interp(np.linspace(0, count, bins + 1), np.arange(count), np.sort(confidences))


def checked(probs: ArrayLike, labels: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return probs as float64 (n, k) and labels as int64 (n,), or raise ValueError naming what is wrong."""
    probs = np.asarray(probs, dtype=np.float64)
    if probs.ndim != 2 or probs.shape[0] < 1 or probs.shape[1] < 2:
        raise ValueError(
            f"probs has shape {probs.shape}; expected (n, k) with n >= 1 samples and k >= 2 classes"
        )
    if not (np.all(probs >= 0.0) and np.all(probs <= 1.0 + ROW_SUM_TOLERANCE)):
        raise ValueError("probs has values that are NaN or outside [0, 1]; give probabilities, not logits")
    deviation = float(np.max(np.abs(probs.sum(axis=1) - 1.0)))
    if deviation > ROW_SUM_TOLERANCE:
        raise ValueError(f"probs has a row whose sum is {deviation:.3g} away from 1; rows must sum to 1")
    return probs, checked_labels(labels, *probs.shape)


def checked_labels(labels: ArrayLike, samples: int, classes: int) -> NDArray[np.int64]:
    """Return `labels` as int64 (samples,) within 0..classes-1, or raise ValueError naming what is wrong."""
    labels = np.asarray(labels)
    if labels.shape != (samples,):
        raise ValueError(f"labels has shape {labels.shape}; expected ({samples},), one label per sample")
    if labels.dtype.kind not in "iu":
        raise ValueError(f"labels has dtype {labels.dtype}; expected integers 0..{classes - 1}")
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        raise ValueError(f"labels has values from {low} to {high}; expected 0..{classes - 1}")
    return labels.astype(np.int64)


def check_binning(bins: int, binning: str, variant: str) -> None:
    """Raise ValueError naming the first argument that is not allowed."""
    if not isinstance(bins, int | np.integer) or bins < 1:
        raise ValueError(f"bins is {bins!r}; expected an integer >= 1")
    for name, value, allowed in (("binning", binning, BINNINGS), ("variant", variant, MASS_VARIANTS)):
        if value not in allowed:
            raise ValueError(f"{name} is {value!r}; expected one of {', '.join(allowed)}")


def bin_gaps(
    confidences: NDArray[np.float64], correct: NDArray[np.bool_], bins: int, binning: str, variant: str
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return each bin's number of samples and its sum of (confidence - correct)."""
    check_binning(bins, binning, variant)
    gaps = confidences - correct
    if binning == "mass" and variant == "split":
        groups = np.array_split(gaps[np.argsort(confidences, kind="stable")], bins)
        return np.array([len(group) for group in groups]), np.array([group.sum() for group in groups])
    if binning == "mass":
        edges = equal_mass_edges(confidences, bins) * (1 + EDGE_ROUNDING)
        index = np.searchsorted(edges, confidences, side="left") - 1
    else:
        index = width_index(confidences, bins)
    counted = (index >= 0) & (index < bins)
    index = index[counted]
    return np.bincount(index, minlength=bins), np.bincount(index, gaps[counted], bins)


def _split_sizes(samples: int, bins: int) -> NDArray[np.int64]:
    """Return the sizes of the parts into which `np.array_split` cuts this many samples."""
    return samples // bins + (np.arange(bins) < samples % bins)


def _ece_if_calibrated(predictions: Predictions, sizes: NDArray[np.int64]) -> float:
    """Return the mean ECE over draws of outcomes; bins of these sizes divide the sorted confidences."""
    confidence = predictions.confidence[predictions.order]
    filled = sizes[sizes > 0]
    starts = np.cumsum(filled) - filled
    hits = np.add.reduceat(_uniform_draws(len(confidence)) < confidence, starts, axis=1, dtype=np.int64)
    gaps = np.add.reduceat(confidence, starts) - hits
    return float(np.abs(gaps).sum() / hits.shape[0] / len(confidence))


@lru_cache(maxsize=2)
def _uniform_draws(samples: int) -> NDArray[np.float32]:
    """Return uniform numbers (RESAMPLES, samples), the same for all predictions of as many samples."""
    return np.random.default_rng(0).random((RESAMPLES, samples), dtype=np.float32)


def _residuals(predictions: Predictions) -> NDArray[np.float64]:
    """Return the probabilities minus the one-hot labels (n, k)."""
    residuals = predictions.probs.copy()
    residuals[predictions.rows, predictions.labels] -= 1.0
    return residuals
