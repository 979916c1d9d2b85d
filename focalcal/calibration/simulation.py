"""Calibrators where the truth is known: logits made from posteriors by one distortion.

Inputs are Gaussian around one mean per class. The means are orthogonal and equally far from 0, so that the
posterior is a softmax of the input. A network that knew it would have its logarithm as logits; a distortion
turns that into the logits that calibrators see. Labels are drawn from the posterior. All calibrators and
distortions of a repetition have the same inputs. The score is the mean Kullback-Leibler divergence of
predictions from the posterior, on other inputs: no test labels add noise.
"""

import math
import multiprocessing
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from focalcal.calibration.calibrators import Context, calibrator_class
from focalcal.calibration.catalogue import METHODS, distortion
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.methods.affine import one_thread
from focalcal.theory.psi import log_psi_inverse
from focalcal.theory.two_temperatures import implied_gamma, is_clear

Array = NDArray[np.float64]
FOCAL = "fts"
EXCESS = 0.6
"""The means of K classes are sqrt(2 log K) + this far from 0: the least possible error is 10 to 16 %."""
TEST_NUMBERS, MOST_TEST_SAMPLES = 1_000_000, 4000
"""Inputs that divergences are means over: so many that they have the first number of logits, at most the
second."""
FITTED_NUMBERS, FEWEST_REPETITIONS = 2_500_000, 2
"""Large cells have fewer repetitions, with the first number of logits in all, but at least the second."""
SLOW = ("ms", "fts-vs", "fms", "svs-cv", "sms-cv", "dirichlet")
MOST_REPETITIONS_OF_SLOW, MOST_CLASSES_OF_SLOW = 3, 10
"""Limits for calibrators that cost more than all others together."""


DECIMALS = 12
"""Of divergences: beyond these they are rounding."""


class Simulated(NamedTuple):
    """What a distortion makes of log-posteriors, all (n, k)."""

    logits: Array
    log_truth: Array


@distortion(label="nothing wrong")
def nothing(log_posterior: Array) -> Simulated:
    """Return right logits: what a calibrator loses here is what its parameters cost."""
    return Simulated(log_posterior, log_posterior)


@distortion(label="T = 2")
def temperature(log_posterior: Array) -> Simulated:
    """Return logits that are twice too large: T = 2 undoes it."""
    return Simulated(2.0 * log_posterior, log_posterior)


@distortion(label="focal loss, \N{GREEK SMALL LETTER GAMMA} = 3")
def focal(log_posterior: Array) -> Simulated:
    """Return the minimiser of focal loss with gamma 3: Psi^3 undoes it."""
    return Simulated(log_psi_inverse(log_posterior, 3.0), log_posterior)


@distortion(label="focal loss, \N{GREEK SMALL LETTER GAMMA} = \N{MINUS SIGN}0.5")
def negative_focal(log_posterior: Array) -> Simulated:
    """Return what Psi with gamma -1/2 undoes."""
    return Simulated(log_psi_inverse(log_posterior, -0.5), log_posterior)


@distortion(label="rest too flat")
def flat_rest(log_posterior: Array) -> Simulated:
    """Return logits with the right top probability and half the differences among the rest, as by Brier."""
    return Simulated(_with_rest(log_posterior, 0.5), log_posterior)


@distortion(label="rest too sharp")
def sharp_rest(log_posterior: Array) -> Simulated:
    """Return logits with the right top probability and twice the differences among the rest."""
    return Simulated(_with_rest(log_posterior, 2.0), log_posterior)


@distortion(label="label smoothing 0.1")
def label_smoothing(log_posterior: Array) -> Simulated:
    """Return the minimiser of cross-entropy with label smoothing 0.1."""
    return Simulated(_mixed(log_posterior, 0.1), log_posterior)


@distortion(label="label noise 0.1")
def label_noise(log_posterior: Array) -> Simulated:
    """Return right logits of which one label in ten is drawn again at random, and the flatter truth."""
    return Simulated(log_posterior, _mixed(log_posterior, 0.1))


@distortion(label="class bias 0.5")
def class_bias(log_posterior: Array) -> Simulated:
    """Return logits with an offset per class, normal with standard deviation 0.5."""
    offsets = np.random.default_rng(log_posterior.shape[1]).normal(0.0, 0.5, log_posterior.shape[1])
    return Simulated(log_posterior + offsets, log_posterior)


def distorted(name: str, log_posterior: Array) -> Simulated:
    """Return what a distortion of the catalogue makes of log-posteriors."""
    return globals()[name](log_posterior)


class Fit(NamedTuple):
    """What came of one fit."""

    divergence: float
    parameters: dict[str, Any]


Draw = dict[tuple[str, str], Fit | None]
"""The fits to one draw of samples by distortion and calibrator; None where no fit was found."""


class Task(NamedTuple):
    """One draw of samples, to which every calibrator is fitted under every distortion."""

    classes: int
    samples: int
    repetition: int


def divergences(spec: Mapping[str, Any], processes: int = 1) -> list[dict[str, Any]]:
    """Return one row per distortion, number of classes, number of samples and calibrator.

    Columns: `repetitions` with a fit, and `failed` ones without; mean and standard error of `divergence`, in
    nats; median `gamma` of calibrators that fit one. Of two temperatures: geometric mean `ratio` of T_rest to
    T_top, how often they differ clearly (`judged`), and how often gamma of FTS then has the sign that they
    predict (`as_predicted`).
    """
    tasks = [
        Task(classes, samples, repetition)
        for classes in spec["classes"]
        for samples in spec["samples"]
        for repetition in range(repetitions(classes, samples, spec["repetitions"]))
    ]
    # The largest first, so that none of them is left to one process in the end.
    tasks.sort(key=lambda task: (-task.classes * task.samples, task))
    if processes == 1:
        found = [_fitted(task, spec) for task in tasks]
    else:
        with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
            found = list(pool.map(_fitted, tasks, [spec] * len(tasks)))
    results = dict(zip(tasks, found, strict=True))
    return [
        row
        for distortion in spec["distortions"]
        for classes in spec["classes"]
        for samples in spec["samples"]
        for row in _rows(distortion, classes, samples, spec, results)
    ]


def repetitions(classes: int, samples: int, most: int) -> int:
    """Return how often a cell is repeated: at most `most` times, fewer where there are many numbers."""
    return min(most, max(FEWEST_REPETITIONS, FITTED_NUMBERS // (classes * samples)))


def applicable(method: str, classes: int, repetition: int) -> bool:
    """Return whether a calibrator is fitted in a repetition."""
    most = METHODS[method].most_classes
    if method in SLOW:
        return classes <= MOST_CLASSES_OF_SLOW and repetition < MOST_REPETITIONS_OF_SLOW
    return most is None or classes <= most


def log_posteriors(generator: np.random.Generator, samples: int, classes: int) -> Array:
    """Return the log-posteriors of inputs from all classes, (n, k)."""
    distance = math.sqrt(2.0 * math.log(classes)) + EXCESS
    inputs = generator.normal(size=(samples, classes))
    inputs[np.arange(samples), generator.integers(classes, size=samples)] += distance
    return log_softmax(distance * inputs, axis=1)


def _fitted(task: Task, spec: Mapping[str, Any]) -> Draw:
    """Return the fits to one draw of samples."""
    generator = np.random.default_rng([spec["seed"], task.classes, task.samples, task.repetition])
    log_posterior = log_posteriors(generator, task.samples, task.classes)
    thresholds = generator.random((task.samples, 1))
    found: Draw = {}
    with one_thread():
        for name in spec["distortions"]:
            logits, log_truth = distorted(name, log_posterior)
            # The sum over all classes may be rounded to less than a threshold.
            labels = (np.exp(log_truth).cumsum(axis=1)[:, :-1] < thresholds).sum(axis=1)
            objective = Objective(logits, labels, threads=1)
            test = _test(name, task.classes, spec["seed"])
            for method in spec["methods"]:
                if applicable(method, task.classes, task.repetition):
                    found[name, method] = _fit(method, objective, test)
    return found


def _fit(method: str, objective: Objective, test: Simulated) -> Fit | None:
    criterion = None if METHODS[method].criteria == () else "nll"
    calibrator = calibrator_class(method).from_context(Context(criterion))
    try:
        calibrator.fit_objective(objective, scored=False)
    except FloatingPointError:
        return None
    logs = calibrator.predict_log_proba(test.logits)
    divergence = float((np.exp(test.log_truth) * (test.log_truth - logs)).sum(axis=1).mean())
    return Fit(max(0.0, round(divergence, DECIMALS)), calibrator.parameters)


@cache
def _test(distortion: str, classes: int, seed: int) -> Simulated:
    """Return the inputs that divergences are means over, the same for all fits."""
    samples = min(MOST_TEST_SAMPLES, TEST_NUMBERS // classes)
    generator = np.random.default_rng([seed, classes])
    return distorted(distortion, log_posteriors(generator, samples, classes))


def _rows(
    distortion: str, classes: int, samples: int, spec: Mapping[str, Any], results: Mapping[Task, Draw]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of one cell, one per calibrator that was fitted to it."""
    count = repetitions(classes, samples, spec["repetitions"])
    draws = [results[Task(classes, samples, repetition)] for repetition in range(count)]
    for method in spec["methods"]:
        tried = [draw[distortion, method] for draw in draws if (distortion, method) in draw]
        fits = [fit for fit in tried if fit is not None]
        if not tried:
            continue
        values = np.array([fit.divergence for fit in fits])
        gammas = [fit.parameters.get("gamma", 0.0) for fit in fits]
        yield {
            "distortion": distortion,
            "classes": classes,
            "samples": samples,
            "method": method,
            "repetitions": len(fits),
            "failed": len(tried) - len(fits),
            "divergence": float(values.mean()) if fits else None,
            "error": float(values.std(ddof=1) / math.sqrt(len(fits))) if len(fits) > 1 else None,
            "gamma": float(np.median(gammas)) if any(gammas) else None,
            **_signs(
                [(draw[distortion, method], draw.get((distortion, FOCAL))) for draw in draws[: len(tried)]]
            ),
        }


def _signs(pairs: list[tuple[Fit | None, Fit | None]]) -> dict[str, Any]:
    """Return the ratio of two temperatures, and how often they predict the sign of gamma of FTS."""
    found = [
        (implied_gamma(two.parameters["top_temperature"], two.parameters["rest_temperature"]), focal)
        for two, focal in pairs
        if two is not None and "top_temperature" in two.parameters
    ]
    if not found:
        return dict.fromkeys(("ratio", "judged", "as_predicted"))
    judged = [
        implied * focal.parameters["gamma"] > 0
        for implied, focal in found
        if focal is not None and is_clear(implied)
    ]
    ratio = math.exp(float(np.mean([math.log1p(implied) for implied, _ in found])))
    return {"ratio": ratio, "judged": len(judged), "as_predicted": sum(judged)}


def _with_rest(log_posterior: Array, power: float) -> Array:
    """Return log-probabilities with the same top probability and the others in proportion to their power."""
    rows, top = np.arange(len(log_posterior)), log_posterior.argmax(axis=1)
    shares = power * log_posterior
    shares[rows, top] = -np.inf
    of_rest = np.exp(log_posterior)
    of_rest[rows, top] = 0.0
    out = log_softmax(shares, axis=1) + np.log(of_rest.sum(axis=1, keepdims=True))
    out[rows, top] = log_posterior[rows, top]
    return out


def _mixed(log_posterior: Array, share: float) -> Array:
    """Return the logarithm of the posterior mixed with the uniform distribution."""
    return np.logaddexp(log_posterior + math.log1p(-share), math.log(share / log_posterior.shape[1]))
