"""Calibrators fitted by log-loss to few validation samples, scored on the whole test split.

For each size, subsamples of the validation split are drawn without replacement. The size that is the whole
split is fitted once, and again to bootstrap resamples of it. Draws follow from the labels alone, so that all
calibrators, and all networks with the same validation samples, are fitted to the same ones; the test samples
of all fits are resampled alike. Nothing is averaged that a paired comparison needs.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.calibrators import calibrator_class
from focalcal.calibration.catalogue import METHODS
from focalcal.calibration.files.logits_io import RunLogits
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.run import context_of, why_not_applicable
from focalcal.calibration.scores.predictions import Predictions
from focalcal.calibration.scores.resampling import (
    COMPARED_METRICS,
    metrics_of_means,
    resample_weights,
    score_summands,
)
from focalcal.common import npz
from focalcal.common.io import atomic_output, read_json, write_json

MOST_FITTED = 20_000
"""Samples that the repetitions of one size are fitted to, in all."""
FEWEST_REPETITIONS = 6
"""Whatever the size: their number less one is the degrees of freedom of its variance."""
FITTED = ("gamma", "temperature")
Array = NDArray[np.float64]


class Draws(NamedTuple):
    """The validation samples that one size is fitted to."""

    subsets: list[NDArray[np.int64]]
    """Samples of each fit (m,); the score of a size is the mean over these."""
    resampled: list[NDArray[np.int64]]
    """Samples of the fits whose scores tell its variance: those above, or bootstrap resamples."""
    factor: float
    """The variance of the score over validation samples, divided by that over the resampled fits."""


@dataclass(frozen=True)
class SizeScores:
    """The scores of m calibrators at s sizes, NaN where one was not fitted; metrics as `COMPARED_METRICS`."""

    record: dict[str, Any]
    """`run`, `classes`, `samples` (s,), `methods` (m,), `factors` (s,), `validation` and `test`, which name
    the samples of each split, and what was not fitted and why."""
    scores: Array
    """Mean test scores over subsets (m, s, 3)."""
    fitted: Array
    """Mean gamma and temperature over subsets (m, s, 2)."""
    draws: Array
    """Scores on resamples of the test split, means over subsets (m, s, b, 3)."""
    refits: Array
    """Test scores of the resampled fits (m, s, r, 3)."""


def scores_by_size(logits: RunLogits, spec: Mapping[str, Any]) -> SizeScores:
    """Return the scores of a spec's `methods` at each of its `sizes` that the validation split has."""
    val, test = logits.val, logits.test
    context = replace(context_of(spec), criterion="nll")
    sizes = [size for size in spec["sizes"] if size <= len(val.labels)]
    drawn = [draw(val.labels, size, spec["repetitions"]) for size in sizes]
    weights = np.concatenate([*resample_weights(len(test.labels), spec["resamples"])]).T.copy()
    shape = (len(spec["methods"]), len(sizes))
    most = max((len(draws.resampled) for draws in drawn), default=0)
    count = len(COMPARED_METRICS)
    scores, fitted = np.full((*shape, count), np.nan), np.full((*shape, len(FITTED)), np.nan)
    resampled = np.full((*shape, weights.shape[1], count), np.nan)
    refits = np.full((*shape, most, count), np.nan)
    skipped = []

    def fit_and_score(method: str, rows: NDArray[np.int64]) -> tuple[Array, Array]:
        """Return gamma and T, and the scores on the test split and on its resamples (1 + b, 3)."""
        kind = calibrator_class(method)
        own = context if METHODS[method].criteria != () else replace(context, criterion=None)
        objective = Objective(val.logits[rows], val.labels[rows])
        calibrator = kind.from_context(own).fit_objective(objective, scored=False)
        predictions = Predictions.from_logs(calibrator.predict_log_proba(test.logits), test.labels)
        summands = score_summands(predictions, context.bins)
        means = np.vstack([summands.mean(axis=0), (summands.T @ weights).T])
        found = [calibrator.parameters.get(name, np.nan) for name in FITTED]
        parameters = np.array([np.nan if np.ndim(value) else value for value in found])
        return parameters, metrics_of_means(means, context.bins)

    for m, method in enumerate(spec["methods"]):
        if reason := why_not_applicable(method, spec["run"], val.logits.shape[1]):
            skipped.append({"method": method, "reason": reason})
            continue
        for s, draws in enumerate(drawn):
            try:
                here = [fit_and_score(method, rows) for rows in draws.subsets]
                again = here
                if draws.resampled is not draws.subsets:
                    again = [fit_and_score(method, rows) for rows in draws.resampled]
            except FloatingPointError as error:
                reason = f"no fit was found: {error}"
                skipped.append({"method": method, "samples": sizes[s], "reason": reason})
                continue
            of_draws = np.mean([found for _, found in here], axis=0)
            fitted[m, s] = np.mean([parameters for parameters, _ in here], axis=0)
            scores[m, s], resampled[m, s] = of_draws[0], of_draws[1:]
            refits[m, s, : len(again)] = [found[0] for _, found in again]
    record = {
        "run": dict(spec["run"]),
        "classes": val.logits.shape[1],
        "samples": sizes,
        "methods": list(spec["methods"]),
        "factors": [draws.factor for draws in drawn],
        "validation": name_of_samples(val.labels),
        "test": name_of_samples(test.labels),
        "not_applicable": skipped,
    }
    return SizeScores(record, scores, fitted, resampled, refits)


def draw(labels: NDArray[np.int64], size: int, repetitions: int) -> Draws:
    """Return the validation samples that a size is fitted to; at least two, given at most all of them.

    Of n samples, r subsamples of m overlap: their mean varies with the n samples too. For a mean over samples
    the variance of that mean is that among subsamples times 1 / r + m / (n - m).
    """
    count = len(labels)
    repetitions = min(repetitions, max(FEWEST_REPETITIONS, MOST_FITTED // size))
    seed = int(name_of_samples(labels), 16)
    generators = [np.random.default_rng([seed, size, repetition]) for repetition in range(repetitions)]
    if size == count:
        resampled = [np.sort(generator.integers(count, size=count)) for generator in generators]
        return Draws([np.arange(count)], resampled[:FEWEST_REPETITIONS], 1.0)
    subsets = [np.sort(generator.permutation(count)[:size]) for generator in generators]
    return Draws(subsets, subsets, 1 / repetitions + size / (count - size))


def name_of_samples(labels: NDArray[np.int64]) -> str:
    """Return a name that splits with the same labels in the same order share: they are the same samples."""
    return hashlib.sha256(labels.astype("<i8").tobytes()).hexdigest()[:16]


def write_size_scores(result: SizeScores, origin: Mapping[str, Any], record: Path, scores: Path) -> None:
    """Write the record, with `origin`, the settings and code that made it, and the arrays as float32."""
    write_json(record, {**result.record, **origin})
    arrays = {name: getattr(result, name) for name in ARRAYS}
    with atomic_output(scores) as partial:
        np.savez_compressed(partial, **arrays | {"draws": result.draws.astype(np.float32)})


ARRAYS = ("scores", "fitted", "draws", "refits")


def read_size_scores(record: Path, scores: Path) -> SizeScores:
    """Return what `write_size_scores` wrote."""
    arrays = npz.read_npz(scores)
    return SizeScores(read_json(record), **{name: arrays[name].astype(np.float64) for name in ARRAYS})
