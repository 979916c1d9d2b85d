"""Labelled predictions: checked once, and what several metrics need computed once."""

from functools import cached_property, lru_cache
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from focalcal.calibration.scores.binning import Binned, bin_gaps, split_sizes, weighted_counts, width_index
from focalcal.calibration.scores.refinement import held_out_scores
from focalcal.common.arrays import label_vector, probability_matrix

ROW_SUM_TOLERANCE = 1e-3
LEAST_LOG = -700.0
"""Logarithm that stands for those of probabilities below it where a finite one is needed."""
RESAMPLES = 100
"""Draws of outcomes behind the errors of perfectly calibrated predictions."""


class Predictions:
    """Predicted probabilities (n, k) of labelled samples; what several metrics need is computed once."""

    def __init__(self, probs: ArrayLike, labels: ArrayLike) -> None:
        self.probs = probability_matrix("probs", probs, ROW_SUM_TOLERANCE, fewest=1)
        self.labels = label_vector(labels, *self.probs.shape)

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
        """Return `probs` if it is a `Predictions` of these labels already, else the predictions of both."""
        if not isinstance(probs, Predictions):
            return cls(probs, labels)
        if labels is not probs.labels and not np.array_equal(
            label_vector(labels, *probs.probs.shape), probs.labels
        ):
            raise ValueError("labels are not those of the predictions; allowed: the same labels")
        return probs

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

    @property
    def residuals(self) -> NDArray[np.float64]:
        """Return the probabilities minus the one-hot labels (n, k)."""
        residuals = self.probs.copy()
        residuals[self.rows, self.labels] -= 1.0
        return residuals

    @cached_property
    def drawn_hits(self) -> NDArray[np.bool_]:
        """Return draws (d, n) of whether samples, by rising confidence, are correct with that chance."""
        confidence = self.confidence[self.order]
        # The smallest float32 that is not below it: comparing numbers of the same type is twice as fast.
        chances = confidence.astype(np.float32)
        chances[chances < confidence] = np.nextafter(chances[chances < confidence], np.float32(2))
        return _uniform_draws(len(chances)) < chances

    @cached_property
    def _class_bins(self) -> dict[int, Binned]:
        return {}

    @cached_property
    def _bin_gaps(self) -> dict[tuple, tuple[NDArray[np.int64], NDArray[np.float64]]]:
        return {}

    def bin_gaps(
        self, bins: int, binning: str, variant: str
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return `binning.bin_gaps` of the confidences."""
        key = (bins, binning, variant)
        if key not in self._bin_gaps:
            order = self.order if binning == "mass" else None
            self._bin_gaps[key] = bin_gaps(self.confidence, self.correct, *key, order)
        return self._bin_gaps[key]

    def class_bins(self, bins: int) -> Binned:
        """Return each class's probability in bins of equal width: class c has bins c * bins and following."""
        if bins not in self._class_bins:
            total = bins * self.probs.shape[1]
            index = (width_index(self.probs, bins) + np.arange(0, total, bins)).ravel()
            self._class_bins[bins] = Binned(
                counts=np.bincount(index, minlength=total),
                gaps=weighted_counts(index, self.residuals.ravel(), total),
                hits=np.bincount(index[self.rows * self.probs.shape[1] + self.labels], minlength=total),
            )
        return self._class_bins[bins]

    def mass_index(self, bins: int) -> NDArray[np.int64]:
        """Return the number of each confidence's bin of equal mass, variant "split" (n,)."""
        index = np.empty(len(self.labels), dtype=np.int64)
        index[self.order] = np.repeat(np.arange(bins), split_sizes(len(self.labels), bins))
        return index

    def mass_bins(self, bins: int) -> Binned:
        """Return the confidences in bins of equal mass, variant "split"."""
        sizes = split_sizes(len(self.labels), bins)
        index = np.repeat(np.arange(bins), sizes)
        correct = self.correct[self.order]
        gaps = weighted_counts(index, self.confidence[self.order] - correct, bins)
        return Binned(sizes, gaps, weighted_counts(index, correct, bins))


Probs = ArrayLike | Predictions
"""Probabilities (n, k) whose rows sum to 1, or the predictions that hold them."""


@lru_cache(maxsize=2)
def _uniform_draws(samples: int) -> NDArray[np.float32]:
    """Return uniform numbers (RESAMPLES, samples), the same for all predictions of as many samples."""
    return np.random.default_rng(0).random((RESAMPLES, samples), dtype=np.float32)
