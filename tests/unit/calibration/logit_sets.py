"""Small sets of logits of every kind that a search may meet, and the slow obvious evaluation of a grid."""

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.catalogue import CRITERIA
from focalcal.calibration.metrics import criterion_value
from focalcal.theory.psi import log_psi

Labelled = tuple[NDArray[np.float64], NDArray[np.int64]]


def noisy(samples: int, classes: int, scale: float, seed: int = 0, noise: float = 1.0) -> Labelled:
    """Return logits whose largest entry is right about as often as `noise` allows."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, samples)
    logits = generator.normal(0.0, noise, (samples, classes))
    logits[np.arange(samples), labels] += 2.0
    return logits * scale, labels


def like_a_network(samples: int, classes: int, seed: int = 0) -> Labelled:
    """Return float32-rounded logits with a heavy confident part and a tail of unsure samples."""
    generator = np.random.default_rng(seed)
    logits, labels = noisy(samples, classes, 1.0, seed)
    logits *= generator.gamma(2.0, 2.0, (samples, 1))
    return logits.astype(np.float32).astype(np.float64), labels


SETS: dict[str, Labelled] = {
    "flat": noisy(300, 7, 0.01),
    "moderate": noisy(301, 10, 1.0, 1),
    "many classes": noisy(90, 120, 2.0, 2),
    "saturated": noisy(257, 10, 60.0, 3),
    "like a network": like_a_network(250, 40, 4),
    "two classes": noisy(200, 2, 1.5, 5),
    "three classes": noisy(64, 3, 3.0, 6),
    "fewer samples than bins": noisy(7, 4, 1.0, 7),
    "one sample": noisy(1, 5, 1.0, 8),
    "all right": (np.eye(6)[np.arange(60) % 6] * 3.0 + 1e-3 * np.arange(60)[:, None], np.arange(60) % 6),
    "all wrong": (np.eye(6)[np.arange(60) % 6] * 3.0 + noisy(60, 6, 0.1)[0], (np.arange(60) + 1) % 6),
    "constant": (np.full((45, 5), 3.25), np.arange(45) % 5),
    "repeated rows": (np.repeat(noisy(12, 6, 2.0, 9)[0], 25, axis=0), np.arange(300) % 6),
    "tied tops": (np.round(noisy(250, 3, 1.0, 10)[0]), noisy(250, 3, 1.0, 10)[1]),
    "one label": (noisy(90, 4, 1.0, 11)[0], np.zeros(90, dtype=np.int64)),
    "huge": (noisy(50, 6, 1e6, 12)[0], noisy(50, 6, 1.0, 12)[1]),
}


def brute_force(
    logits: NDArray[np.float64],
    labels: NDArray[np.int64],
    gammas: list[float],
    temperatures: list[float],
    bins: int = 15,
    adaece: str = "split",
) -> dict[str, NDArray[np.float64]]:
    """Return each criterion (gammas, temperatures), point by point from predictions and definitions."""
    surfaces = {name: np.empty((len(gammas), len(temperatures))) for name in CRITERIA}
    for row, gamma in enumerate(gammas):
        for column, temperature in enumerate(temperatures):
            log_probs = log_psi(logits, gamma, temperature)
            for name, surface in surfaces.items():
                surface[row, column] = criterion_value(name, log_probs, labels, bins, adaece)
    return surfaces
