"""Gaussian classification problems with an exactly known class posterior.

A problem has K classes of equal prior; class k is an isotropic Gaussian N(mean_k, (noise * std_k)^2 I).
Random numbers come from `numpy.random.RandomState`, whose streams NumPy promises never to change.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from focalcal.common.samples import SPLITS
from focalcal.data.prepared import PreparedData, assembled
from focalcal.data.splits import consecutive

# C21 section 5.2 plots its one-dimensional, three-class distribution (Fig. 3a) but gives no parameters. These
# three classes are chosen to resemble it: each is the most probable somewhere, neighbours overlap, and the
# unequal widths keep the posterior from being a linear softmax.
_GAUSS3_MEANS = ((-2.0,), (0.0,), (2.5,))
_GAUSS3_STDS = (1.0, 0.8, 1.3)

# Ten classes in 16 dimensions. The scale of the means gives a Bayes error of about 20 % at noise 1.
_GAUSS10_CLASSES = 10
_GAUSS10_DIMENSIONS = 16
_GAUSS10_MEANS_SEED = 10
_GAUSS10_MEANS_SCALE = 0.7
_GAUSS10_STD_RANGE = (0.9, 1.1)


@dataclass(frozen=True)
class GaussianClasses:
    """K equally likely isotropic Gaussian classes in d dimensions."""

    means: np.ndarray
    """float64 (K, d)."""
    stds: np.ndarray
    """float64 (K,)."""

    def sample(self, count: int, random: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        """Return `count` independent samples: float32 features (count, d) and int64 labels (count,)."""
        labels = random.randint(0, len(self.means), size=count).astype(np.int64)
        deviations = random.standard_normal((count, self.means.shape[1]))
        features = self.means[labels] + self.stds[labels, None] * deviations
        return features.astype(np.float32), labels

    def log_posterior(self, features: np.ndarray) -> np.ndarray:
        """Return log p(class | x), float64 (n, K), for finite features (n, d)."""
        features = np.asarray(features, dtype=np.float64)
        dimensions = self.means.shape[1]
        log_joint = np.empty((len(features), len(self.means)))
        for k, (mean, std) in enumerate(zip(self.means, self.stds, strict=True)):
            squared_distance = np.square((features - mean) / std).sum(axis=1)
            log_joint[:, k] = -0.5 * squared_distance - dimensions * np.log(std)
        log_joint -= log_joint.max(axis=1, keepdims=True)
        return log_joint - np.log(np.exp(log_joint).sum(axis=1, keepdims=True))

    def posterior(self, features: np.ndarray) -> np.ndarray:
        """Return p(class | x), float64 (n, K), for finite features (n, d)."""
        return np.exp(self.log_posterior(features))


def gauss3(noise: float = 1.0) -> GaussianClasses:
    """Return the one-dimensional three-class problem after C21 section 5.2, with widths scaled by `noise`."""
    return GaussianClasses(np.array(_GAUSS3_MEANS), noise * np.array(_GAUSS3_STDS))


def gauss10(noise: float = 1.0) -> GaussianClasses:
    """Return the ten-class problem in 16 dimensions, with widths scaled by `noise`; Bayes error 20 % at 1."""
    random = np.random.RandomState(_GAUSS10_MEANS_SEED)
    means = _GAUSS10_MEANS_SCALE * random.standard_normal((_GAUSS10_CLASSES, _GAUSS10_DIMENSIONS))
    return GaussianClasses(means, noise * np.linspace(*_GAUSS10_STD_RANGE, _GAUSS10_CLASSES))


PROBLEMS = {"gauss-3": gauss3, "gauss-10": gauss10}


def prepare_gaussian(name: str, sizes: Mapping[str, int], seed: int, noise: float) -> PreparedData:
    """Return the dataset `name` ("gauss-3" or "gauss-10"), with the exact posterior of every sample.

    Each split has its own random stream, so a larger training set leaves validation and test unchanged.
    The posterior is evaluated at the float32 features that the model receives.
    """
    problem = PROBLEMS[name](noise)
    samples = [
        problem.sample(sizes[split], np.random.RandomState([seed, i])) for i, split in enumerate(SPLITS)
    ]
    inputs = np.concatenate([features for features, _ in samples])
    labels = np.concatenate([labels for _, labels in samples])
    indices = consecutive({split: sizes[split] for split in SPLITS})
    classes, dimensions = problem.means.shape
    as_they_are = {"mean": np.zeros(dimensions), "std": np.ones(dimensions)}
    return assembled(inputs, labels, indices, classes, as_they_are, posterior=problem.posterior(inputs))
