"""Where the posterior is known, every calibrator that contains the true map finds it."""

import numpy as np
import pytest
from scipy.special import rel_entr, softmax

from focalcal.calibration.calibrators import Context, calibrator_class
from focalcal.calibration.catalogue import METHODS

SAMPLES, CLASSES = 10_000, 3
LARGEST_DIVERGENCE = 1e-3
GAMMA, TEMPERATURE = 1.0, 1.5
SLOPES, INTERCEPTS = np.array([0.6, 0.8, 1.0]), np.array([0.3, 0.0, -0.4])
MATRIX = np.array([[0.7, 0.1, 0.0], [0.0, 0.9, 0.2], [0.1, 0.0, 0.6]])


def focal(probs, gamma):
    """Return Psi^gamma as K24 prints it."""
    h = probs / ((1 - probs) ** gamma - gamma * (1 - probs) ** (gamma - 1) * probs * np.log(probs))
    return h / h.sum(axis=1, keepdims=True)


def plain(logits):
    return softmax(logits, axis=1)


def scaled(logits):
    return plain(logits / TEMPERATURE)


def recovered(logits):
    return focal(plain(logits), GAMMA)


def focal_scaled(logits):
    return focal(scaled(logits), GAMMA)


def scaled_recovered(logits):
    return plain(np.log(recovered(logits)) / TEMPERATURE)


def vector(logits):
    return plain(np.log(plain(logits)) * SLOPES + INTERCEPTS)


def matrix(logits):
    return plain(np.log(plain(logits)) @ MATRIX.T + INTERCEPTS)


def mixture(logits):
    return 0.7 * scaled(logits) + 0.2 * plain(logits) + 0.1 / CLASSES


def two_temperatures(logits):
    rows, top = np.arange(len(logits)), logits.argmax(axis=1)
    probs = plain(logits / 0.8)
    probs[rows, top] = 0.0
    confidence = scaled(logits)[rows, top]
    probs *= ((1.0 - confidence) / probs.sum(axis=1))[:, None]
    probs[rows, top] = confidence
    return probs


def margin(logits):
    """Return the posterior of two classes that Platt scaling finds."""
    return plain((logits[:, 1:] - logits[:, :1]) * [0.0, 0.7] + [0.0, 0.4])


def two_slopes(logits):
    """Return the posterior of two classes that beta calibration finds."""
    return plain(np.log(plain(logits)) * [0.5, 0.9] + [0.0, 0.3])


CONTAINED = {
    plain: "none ts",
    scaled: "ts ts-prior ts-m20 tva fts fts-prior fts-line fts-predicted ets two-ts vs svs svs-cv ms sms "
    "sms-cv dirichlet fts-vs fts-svs fms",
    recovered: "psi",
    focal_scaled: "fts fts-prior fts-line fts-k24 ts-psi ts-focal-psi fts-vs fts-svs fms",
    scaled_recovered: "psi-ts",
    vector: "vs svs svs-cv ms sms sms-cv dirichlet fts-vs fts-svs fms",
    matrix: "ms sms dirichlet",
    mixture: "ets",
    two_temperatures: "two-ts",
    margin: "platt beta vs svs svs-cv ms sms sms-cv dirichlet fts-vs fts-svs",
    two_slopes: "beta vs svs svs-cv ms sms dirichlet fts-vs fts-svs",
}
BINARY = (margin, two_slopes)
OTHERS = {"isotonic": "it has no form", "constant": "an adversary", "ts-focal": "it fits another loss"}


def divergence(truth, method):
    """Return the mean divergence of fresh predictions from the truth, after a fit to samples of it."""
    generator = np.random.default_rng(0)
    val, test = generator.normal(0.0, 2.0, (2, SAMPLES, 2 if truth in BINARY else CLASSES))
    labels = (truth(val).cumsum(axis=1) < generator.random((SAMPLES, 1))).sum(axis=1)
    criterion = "nll" if METHODS[method].criteria is None else (METHODS[method].criteria or (None,))[0]
    context = Context(criterion, training_gamma=GAMMA)
    calibrator = calibrator_class(method).from_context(context).fit(val, labels)
    return rel_entr(truth(test), calibrator.predict_proba(test)).sum(axis=1).mean()


@pytest.mark.parametrize(
    ("truth", "method"),
    [(truth, method) for truth, methods in CONTAINED.items() for method in methods.split()],
)
def test_the_true_map_is_found(truth, method):
    assert divergence(truth, method) < LARGEST_DIVERGENCE


@pytest.mark.parametrize(
    "truth", [truth for truth, methods in CONTAINED.items() if "ts" not in methods.split()]
)
def test_temperature_scaling_does_not_find_what_it_does_not_contain(truth):
    assert divergence(truth, "ts") > 2 * LARGEST_DIVERGENCE


def test_every_calibrator_is_tried():
    assert {method for methods in CONTAINED.values() for method in methods.split()} | set(OTHERS) == set(
        METHODS
    )
