"""Accuracy, proper scores and calibration errors of predicted class probabilities.

All functions take `probs` of shape (n, k) and integer `labels` of shape (n,), work in float64 and return
Python floats: fractions, never per cent. The predicted class is the first class with the largest probability,
its probability is the confidence.

Binning, where a function takes it:
- "width": `bins` bins of equal width, `(low, high]`; a probability of exactly 0 joins the first one.
- "mass": bins of (nearly) equal numbers of samples, in one of two variants:
  "split" sorts the samples by confidence, ties in sample order, and cuts the sequence as `np.array_split`
  does (fewer samples than bins: one sample a bin); "authors" is the definition in the code released with M20,
  whose edges interpolate the sorted confidences at `linspace(0, n, bins + 1)` and take `(low, high]`: the
  smallest confidence, and everything tied with it, is never counted.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from focalcal.calibration.catalogue import metric

BINNINGS = ("width", "mass")
MASS_VARIANTS = ("split", "authors")
ROW_SUM_TOLERANCE = 1e-3
CONFIDENT = 0.99
EDGE_ROUNDING = 2e-12
"""A confidence that is an edge but for rounding, as the 1/2 of two tied classes is, lies on that edge. Twice
the largest error of the fast kernels, so that they bin as the definitions do."""


@metric(label="Accuracy", factor=100, decimals=1, higher_is_better=True)
def accuracy(probs: ArrayLike, labels: ArrayLike) -> float:
    """Return the share of samples whose predicted class is their label."""
    probs, labels = checked(probs, labels)
    return float(np.mean(probs.argmax(axis=1) == labels))


@metric(label="Error", factor=100, decimals=2)
def error(probs: ArrayLike, labels: ArrayLike) -> float:
    """Return the share of samples whose predicted class is not their label."""
    probs, labels = checked(probs, labels)
    return float(np.mean(probs.argmax(axis=1) != labels))


@metric(label="Log-loss", criterion=True)
def nll(probs: ArrayLike, labels: ArrayLike) -> float:
    """Return the mean of `-log` of the label's probability; infinite where a label has probability 0."""
    probs, labels = checked(probs, labels)
    with np.errstate(divide="ignore"):
        return float(-np.mean(np.log(probs[np.arange(len(labels)), labels])) + 0.0)


def nll_of_logs(log_probs: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """Return `nll` from log-probabilities (n, k), finite where the probabilities themselves underflow."""
    return float(-np.mean(log_probs[np.arange(len(labels)), labels]) + 0.0)


@metric(label="Brier score")
def brier(probs: ArrayLike, labels: ArrayLike) -> float:
    """Return the mean squared distance, summed over classes, to the one-hot label: 0 to 2."""
    return _brier_of(*checked(probs, labels))


@metric(label="ECE", factor=100, decimals=2, criterion=True)
def ece(
    probs: ArrayLike, labels: ArrayLike, bins: int = 15, binning: str = "width", variant: str = "split"
) -> float:
    """Return the expected calibration error: bin-weighted mean of |accuracy - mean confidence|."""
    confidences, correct = _top_label(probs, labels)
    return _ece_of(*_bin_gaps(confidences, correct, bins, binning, variant), len(confidences))


@metric(label="AdaECE", factor=100, decimals=2, criterion=True)
def adaece(probs: ArrayLike, labels: ArrayLike, bins: int = 15, variant: str = "split") -> float:
    """Return the expected calibration error with bins of equal mass."""
    return ece(probs, labels, bins, "mass", variant)


@metric(label="MCE", factor=100, decimals=2)
def mce(
    probs: ArrayLike, labels: ArrayLike, bins: int = 15, binning: str = "width", variant: str = "split"
) -> float:
    """Return the maximum calibration error: the largest |accuracy - mean confidence| of a filled bin."""
    confidences, correct = _top_label(probs, labels)
    return _mce_of(*_bin_gaps(confidences, correct, bins, binning, variant))


@metric(label="Classwise ECE", factor=100, decimals=2)
def classwise_ece(
    probs: ArrayLike, labels: ArrayLike, bins: int = 15, binning: str = "width", variant: str = "split"
) -> float:
    """Return the mean over all k classes of the calibration error of that class's probability."""
    probs, labels = checked(probs, labels)
    check_binning(bins, binning, variant)
    if binning == "width":
        return _classwise_of_widths(probs, labels, bins)
    total = sum(
        np.sum(np.abs(_bin_gaps(column, labels == number, bins, binning, variant)[1]))
        for number, column in enumerate(probs.T)
    )
    return float(total / probs.size)


@metric(label="Share above 0.99 confidence", factor=100, decimals=2, higher_is_better=True)
def s99_share(probs: ArrayLike, labels: ArrayLike, threshold: float = CONFIDENT) -> float:
    """Return the share of samples with confidence above `threshold` (M20 Table 6)."""
    return s99(probs, labels, threshold)[0]


@metric(label="Accuracy above 0.99 confidence", factor=100, decimals=2, higher_is_better=True)
def s99_accuracy(probs: ArrayLike, labels: ArrayLike, threshold: float = CONFIDENT) -> float:
    """Return the accuracy of samples with confidence above `threshold`, NaN if there are none."""
    return s99(probs, labels, threshold)[1]


def s99(probs: ArrayLike, labels: ArrayLike, threshold: float = CONFIDENT) -> tuple[float, float]:
    """Return the share of samples with confidence above `threshold`, and their accuracy (M20 Table 6).

    The accuracy is NaN where no sample is that confident.
    """
    return _s99_of(*_top_label(probs, labels), threshold)


def all_of_logs(
    log_probs: NDArray[np.float64], labels: NDArray[np.int64], bins: int, variant: str
) -> dict[str, float]:
    """Return every metric of the catalogue from log-probabilities (n, k), NaN where it is undefined.

    Each is what its own function returns; probabilities are checked, and the classes ranked, once for all.
    """
    with np.errstate(under="ignore"):
        probs, labels = checked(np.exp(log_probs), labels)
    confidences, correct = _top_label_of(probs, labels)
    width = _bin_gaps(confidences, correct, bins, "width", variant)
    share, confident_accuracy = _s99_of(confidences, correct, CONFIDENT)
    return {
        "accuracy": float(np.mean(correct)),
        "error": float(np.mean(~correct)),
        "nll": nll_of_logs(log_probs, labels),
        "brier": _brier_of(probs, labels),
        "ece": _ece_of(*width, len(labels)),
        "adaece": _ece_of(*_bin_gaps(confidences, correct, bins, "mass", variant), len(labels)),
        "mce": _mce_of(*width),
        "classwise_ece": _classwise_of_widths(probs, labels, bins),
        "s99_share": share,
        "s99_accuracy": confident_accuracy,
    }


def inner_edges(bins: int) -> NDArray[np.float64]:
    """Return the `bins - 1` edges between bins of equal width, each just above where it is meant to be."""
    return np.linspace(0.0, 1.0, bins + 1)[1:-1] * (1 + EDGE_ROUNDING)


def width_index(values: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
    """Return the number of the bin of equal width, `(low, high]`, of each value."""
    return np.searchsorted(inner_edges(bins), values, side="left")


def reliability(
    confidences: NDArray[np.float64], correct: NDArray[np.bool_], bins: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return samples, mean confidence and accuracy of each bin of equal width, NaN where it is empty."""
    index = width_index(confidences, bins)
    count = np.bincount(index, minlength=bins)
    sums = (np.bincount(index, weights, bins) for weights in (confidences, correct))
    with np.errstate(invalid="ignore"):
        confidence, accuracy = (total / count for total in sums)
    return count, confidence, accuracy


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
        raise ValueError(f"labels has shape {labels.shape}; expected ({samples},), one label a sample")
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
    if binning not in BINNINGS:
        raise ValueError(f"binning is {binning!r}; expected one of {', '.join(BINNINGS)}")
    if variant not in MASS_VARIANTS:
        raise ValueError(f"variant is {variant!r}; expected one of {', '.join(MASS_VARIANTS)}")


def _top_label(probs: ArrayLike, labels: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return each sample's confidence (n,) and whether its predicted class is right (n,)."""
    return _top_label_of(*checked(probs, labels))


def _top_label_of(
    probs: NDArray[np.float64], labels: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    predicted = probs.argmax(axis=1)
    return probs[np.arange(len(labels)), predicted], predicted == labels


def _brier_of(probs: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    residual = probs.copy()
    residual[np.arange(len(labels)), labels] -= 1.0
    return float(np.mean(np.sum(residual**2, axis=1)))


def _ece_of(counts: NDArray[np.int64], gaps: NDArray[np.float64], samples: int) -> float:
    return float(np.sum(np.abs(gaps)) / samples) if counts.any() else 0.0


def _mce_of(counts: NDArray[np.int64], gaps: NDArray[np.float64]) -> float:
    filled = counts > 0
    return float(np.max(np.abs(gaps[filled]) / counts[filled])) if filled.any() else 0.0


def _classwise_of_widths(probs: NDArray[np.float64], labels: NDArray[np.int64], bins: int) -> float:
    # All classes at once: class c has the bins c * bins, c * bins + 1, ...
    samples, classes = probs.shape
    gaps = probs.copy()
    gaps[np.arange(samples), labels] -= 1.0
    index = width_index(probs, bins) + bins * np.arange(classes)
    totals = np.bincount(index.ravel(), gaps.ravel(), bins * classes)
    return float(np.sum(np.abs(totals)) / probs.size)


def _s99_of(
    confidences: NDArray[np.float64], correct: NDArray[np.bool_], threshold: float
) -> tuple[float, float]:
    confident = confidences > threshold
    return float(np.mean(confident)), float(np.mean(correct[confident])) if confident.any() else float("nan")


def _bin_gaps(
    confidences: NDArray[np.float64], correct: NDArray[np.bool_], bins: int, binning: str, variant: str
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return each bin's number of samples and its sum of (confidence - correct)."""
    check_binning(bins, binning, variant)
    gaps = confidences - correct
    if binning == "mass" and variant == "split":
        groups = np.array_split(gaps[np.argsort(confidences, kind="stable")], bins)
        return np.array([len(group) for group in groups]), np.array([group.sum() for group in groups])
    if binning == "mass":
        index = np.searchsorted(equal_mass_edges(confidences, bins), confidences, side="left") - 1
    else:
        index = width_index(confidences, bins)
    counted = (index >= 0) & (index < bins)
    return (
        np.bincount(index[counted], minlength=bins),
        np.bincount(index[counted], weights=gaps[counted], minlength=bins),
    )
