"""The calibrator to use for one model: chosen by cross-validated log-loss, the simplest of the best.

Every candidate is fitted to all folds but one of the validation split and scored on the one left out, so that
each validation sample has a held-out log-loss under each candidate. Nothing of a fit to other samples enters
a fold's fit, not even where its search starts. The best candidate has the smallest mean. Of those whose mean
exceeds it by at most one standard error (Breiman et al. 1984, Sec. 3.4.3), the one with the fewest parameters
is recommended. The error is that of the paired difference, since all candidates are scored on the same
samples. The model as trained is a candidate without parameters, so the answer may be to leave it as it is.

Fewer than `ENOUGH_SAMPLES` cannot tell calibrators apart: by then a choice is no better than always scaling
the temperature. With so few, the only candidates beside the model as trained have priors that keep them
bounded. Where the samples are `LEAST_RATIO` times as probable after temperature scaling with a prior as
before, `SAFE` is recommended, or `FOR_FEW` if it is among the methods and the samples suffice for it.

The recommended calibrator is the one fitted to the whole validation split. Test samples score the result and
choose nothing. Where there are none, the result is scored by cross-validation too.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.agreement import agreement, repeated_samples
from focalcal.calibration.calibrators import Calibrator, Context, calibrator_class, load_calibrator
from focalcal.calibration.catalogue import METHODS, ranked
from focalcal.calibration.files.logits_io import ABSENT, RunLogits, Split
from focalcal.calibration.fitting.folds import stratified_folds
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.methods.affine import one_thread
from focalcal.calibration.methods.prior import penalised_loss
from focalcal.calibration.metrics import metric_value
from focalcal.calibration.run import SavedFit, context_of, why_not_applicable
from focalcal.calibration.scores.diagnostics import FitKey, reduce_predictions
from focalcal.calibration.scores.predictions import Predictions
from focalcal.calibration.scores.resampling import mean_change

FOLDS = 4
RESAMPLES = 500
"""Bootstrap draws of validation samples that tell how sure the choice is."""
LEAVE = "none"
"""The candidate that leaves the model as it is."""
SAFE = "ts-prior"
"""The candidate for any number of samples."""
ENOUGH_SAMPLES = 2000
"""With fewer validation samples, only `LEAVE`, `SAFE` and `FOR_FEW` are candidates."""
FOR_FEW, LEAST_SAMPLES = "fms", 100
"""What takes the place of `SAFE` from so many samples on: its priors make it nearly a map of three
parameters. With 50 samples it raised the log-loss of one network by 0.2 nats."""
FOR_OPTIONS = frozenset({LEAVE, SAFE, "ts", "fts", "fts-line", "fts-k24", "two-ts"})
"""The candidates where samples differ in their number of options: what treats all classes alike."""
NOT_FOR_OPTIONS = "it does not treat all classes alike, and samples differ in their number of options"
LEAST_RATIO = 10.0
"""How many times as probable the samples must be with `SAFE` as without, where they are few."""
SCORES = ("nll", "brier", "ece", "smece", "accuracy")
"""What every candidate is measured by."""
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Choice:
    """The result of `recommend`."""

    record: dict[str, Any]
    """The recommended calibrator, fitted to the whole validation split, as `Calibrator.to_record` has it."""
    details: dict[str, Any]
    """What led to it, JSON-ready: `run`, `samples`, `classes`, `folds`, `share` (of resamples of the
    validation samples that lead to the same choice), `log_ratio` (of the probabilities of the samples with
    and without `SAFE`, where they are few, else None), `absent_classes` (without validation samples),
    `candidates` (best first), `not_applicable` (with reasons), `split_gap` (by how many standard errors the
    log-loss as trained is higher on test than on validation samples), `agreement` of labels and predictions
    by split, `repeated` (test samples that are validation samples too) and `reliability` of the test samples
    before and after. Without test samples, `samples` says that there are 0, `split_gap` is 0, and `test` of
    the candidates and `reliability` are those of each validation sample under the fit to the folds that it is
    not in."""


@ranked(
    id="auto",
    label="Auto",
    full_label="the calibrator that cross-validation recommends (auto)",
    color="purple",
    marker="*",
    criteria=("nll",),
    changes_predictions=True,
)
def recommend(
    logits: RunLogits | Split,
    spec: Mapping[str, Any],
    known: Mapping[FitKey, SavedFit] | None = None,
    tell: Callable[[str], object] = str,
) -> Choice:
    """Return the recommended calibrator, fitted to all validation samples, and what led to it.

    Parameters
    ----------
    logits : RunLogits or Split
        Validation logits and labels, which choose, and those of the test split, which only score the result;
        or validation logits and labels alone.
    spec : mapping
        `methods`, the candidates; `gammas` and `temperatures` {start, stop, step}, their grids; `bins` and
        `adaece`, how the scores bin; `run`, of which `loss` and `gamma` say how the model was trained.
    known : mapping, optional
        Fits to the whole validation split with the same settings, by method and criterion
        (`run.read_saved_fits`); those by log-loss are neither made nor scored again.
    tell : callable, optional
        Is told in one line how each candidate did, as soon as it is known.

    Returns
    -------
    Choice
        `record` restores the calibrator (`load_calibrator`); `details` has the candidates and their scores.

    Examples
    --------
    >>> import numpy as np
    >>> from focalcal.calibration.calibrators import load_calibrator
    >>> from focalcal.calibration.files.logits_io import RunLogits, Split
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 3, 800)
    >>> scores = 4 * (np.eye(3)[labels] + rng.normal(size=(800, 3)))  # overconfident
    >>> splits = RunLogits(Split(scores[:400], labels[:400]), Split(scores[400:], labels[400:]))
    >>> grid = {"start": 0.1, "stop": 10.0, "step": 0.1}
    >>> spec = {"methods": ["ts", "vs"], "gammas": [1.0], "temperatures": grid, "bins": 15, "adaece": "split"}
    >>> found = recommend(splits, spec | {"run": {"loss": "ce", "gamma": 0.0}})
    >>> found.record["method"]  # 400 samples are too few for vector scaling
    'ts-prior'
    >>> load_calibrator(found.record).predict_proba(scores[:2]).shape
    (2, 3)
    """
    context, known = context_of(spec), known or {}
    val, test = (logits, None) if isinstance(logits, Split) else (logits.val, logits.test)
    classes = val.logits.shape[1]
    absent = np.setdiff1d(np.arange(classes), val.labels).tolist()
    whole = Objective(val.logits, val.labels)
    few = len(whole.labels) < ENOUGH_SAMPLES
    unfit = set(spec["methods"]) - FOR_OPTIONS if (whole.logits <= ABSENT).any() else set()
    asked = [method for method in spec["methods"] if method not in unfit]
    methods, skipped = considered(asked, spec["run"], classes, absent, len(whole.labels))
    skipped += [{"method": method, "reason": NOT_FOR_OPTIONS} for method in sorted(unfit)]
    held_out: dict[str, Array] = {}
    fitted: dict[str, Calibrator] = {}
    measured: dict[str, _Measured] = {}
    folds = _folds(whole)
    for number, method in enumerate(methods, 1):
        begin = time.monotonic()
        try:
            calibrator = _fit_to_all(method, context, whole, known)
            logs = _held_out_logs(method, context, whole, folds)
            held_out[method] = _losses(logs, whole.labels)
            if test is None:
                measured[method] = _measured(logs, whole.labels, held_out[LEAVE], context)
            fitted[method] = calibrator
            result = f"held-out log-loss {held_out[method].mean():.5f}"
        except FloatingPointError as error:
            skipped.append({"method": method, "reason": f"no fit was found: {error}"})
            result = "no fit was found"
        seconds = time.monotonic() - begin
        tell(f"{number} of {len(methods)}: {METHODS[method].label}: {result}, {seconds:.1f} s")
    names = list(fitted)
    losses = np.array([held_out[name] for name in names])
    sizes = [fitted_size(calibrator) for calibrator in fitted.values()]
    means, errors = losses.mean(axis=1), difference_errors(losses)
    if few:
        ratio, share = _evidence(whole, fitted)
        last = len(names) - 1
        chosen = last if ratio >= math.log(LEAST_RATIO) else 0
        shares = np.zeros(len(names))
        shares[[0, last]] = 1.0 - share, share
    else:
        ratio = None
        chosen = choose(means, errors, sizes)
        shares = _choice_shares(losses, errors, sizes)
    if test is not None:
        measured = _test_results(fitted, known, test, context)
    best = int(np.argmin(means))
    candidates: list[dict[str, Any]] = [
        {
            "method": name,
            "parameters": sizes[i],
            "held_out_nll": float(means[i]),
            "above_best": float(means[i] - means[best]),
            "above_best_error": float(errors[i, best]),
            "share": float(shares[i]),
            "boundaries": fitted[name].boundaries_,
            "test": measured[name].scores,
        }
        for i, name in enumerate(names)
    ]
    name = names[chosen]
    details = {
        "run": dict(spec["run"]),
        "method": name,
        "share": float(shares[chosen]),
        "best": names[best],
        "folds": len(folds),
        "resamples": RESAMPLES,
        "samples": {"val": len(whole.labels), "test": 0 if test is None else len(test.labels)},
        "classes": classes,
        "absent_classes": absent,
        "log_ratio": ratio,
        "split_gap": 0.0 if test is None else _split_gap(val, test),
        "agreement": {"val": agreement(val)} | ({} if test is None else {"test": agreement(test)}),
        "repeated": 0 if test is None else repeated_samples(val, test),
        "candidates": sorted(candidates, key=lambda candidate: candidate["held_out_nll"]),
        "not_applicable": skipped,
        "reliability": {
            side: measured[method].reliability for side, method in (("before", LEAVE), ("after", name))
        },
    }
    return Choice(fitted[name].to_record(), details)


def considered(
    methods: Sequence[str],
    run: Mapping[str, Any],
    classes: int,
    absent: Sequence[int] = (),
    samples: float = math.inf,
) -> tuple[list[str], list[dict[str, str]]]:
    """Return the candidates, `LEAVE` and `SAFE` first, and why the other configured methods are not.

    `absent` are the classes without validation samples, `samples` is the number of these.
    """
    candidates, skipped = [LEAVE, SAFE], []
    needed = {LEAVE: 0, SAFE: 0, FOR_FEW: LEAST_SAMPLES}
    for method in methods:
        declared = METHODS[method]
        cheaper = [other for other in (SAFE, *methods) if method in METHODS[other].replaces]
        reason = why_not_applicable(method, run, classes)
        if not declared.recommendable:
            reason = "recommendations leave it out"
        elif declared.criteria and "nll" not in declared.criteria:
            reason = "it is not fitted by log-loss"
        elif declared.needs_training_gamma and run["gamma"] == 0:
            reason = "its gamma is 0 for this loss, which makes it a method without gamma"
        elif absent and declared.changes_predictions and method != FOR_FEW:
            reason = "it treats each class in its own way, and some have no validation samples"
        elif cheaper:
            reason = f"{cheaper[-1]} takes its place"
        elif samples < (enough := needed.get(method, ENOUGH_SAMPLES)):
            reason = f"fewer than {enough:,} validation samples"
        if reason:
            skipped.append({"method": method, "reason": reason})
        elif method not in {LEAVE, SAFE}:
            candidates.append(method)
    return candidates, skipped


def fitted_size(calibrator: Calibrator) -> int:
    """Return the number of fitted parameters of a fitted calibrator."""
    record = calibrator.to_record()
    declared, parameters = METHODS[record["method"]], record["parameters"]
    return declared.fitted or sum(np.size(parameters[name]) for name in parameters.keys() - declared.fixed)


def difference_errors(losses: Array) -> Array:
    """Return the standard error (m, m) of the difference of each pair of mean losses, losses (m, n)."""
    covariance = np.atleast_2d(np.cov(losses))
    variances = np.diag(covariance)
    squares = variances[:, None] + variances - 2.0 * covariance
    return np.sqrt(np.maximum(squares, 0.0) / losses.shape[1])


def choose(means: Array, errors: Array, sizes: Sequence[int]) -> int:
    """Return which candidate is the simplest within one standard error of the smallest mean.

    `means` (m,), `errors` (m, m) of their differences, `sizes` (m,) in parameters. Of equally simple ones
    the one with the smaller mean is taken.
    """
    best = int(np.argmin(means))
    good = np.flatnonzero(means - means[best] <= errors[:, best])
    return min(good.tolist(), key=lambda i: (sizes[i], means[i]))


def _folds(whole: Objective) -> list[tuple[Objective, NDArray[np.bool_]]]:
    """Return for each fold the objective of the other folds, and which samples it holds out.

    Folds are fitted at the same time, each by one thread.
    """
    fold_of = stratified_folds(whole.labels, min(FOLDS, len(whole.labels)))
    return [
        (Objective(whole.logits[kept], whole.labels[kept], threads=1), ~kept)
        for kept in (fold_of != fold for fold in range(int(fold_of.max()) + 1))
    ]


def _criterion(method: str) -> str | None:
    """Return log-loss, or None for a method that minimises no criterion of the catalogue."""
    return None if METHODS[method].criteria == () else "nll"


def _unfitted(method: str, context: Context) -> Calibrator:
    return calibrator_class(method).from_context(replace(context, criterion=_criterion(method)))


def _fit_to_all(
    method: str, context: Context, whole: Objective, known: Mapping[FitKey, SavedFit]
) -> Calibrator:
    """Return a candidate fitted to all samples, from its known fit if there is one."""
    if (method, _criterion(method)) in known:
        return load_calibrator(known[method, _criterion(method)].record)
    return _unfitted(method, context).fit_objective(whole)


def _held_out_logs(
    method: str, context: Context, whole: Objective, folds: Sequence[tuple[Objective, NDArray[np.bool_]]]
) -> Array:
    """Return log-probabilities (n, k) of validation samples by the fit to the folds that they are not in."""
    logs = np.empty(whole.logits.shape)

    def fill(fold: tuple[Objective, NDArray[np.bool_]]) -> None:
        objective, held = fold
        calibrator = _unfitted(method, context).fit_objective(objective, scored=False)
        logs[held] = calibrator.predict_log_proba(whole.logits[held])

    # The limit on linear algebra holds for the whole process: no fold may lift it under another.
    with one_thread(), ThreadPoolExecutor(whole.threads) as pool:
        list(pool.map(fill, folds))
    return logs


def _losses(logs: Array, labels: NDArray[np.int64]) -> Array:
    return -logs[np.arange(len(labels)), labels]


def _sample_losses(calibrator: Calibrator, logits: NDArray, labels: NDArray[np.int64]) -> Array:
    return _losses(calibrator.predict_log_proba(logits), labels)


def _choice_shares(losses: Array, errors: Array, sizes: Sequence[int]) -> Array:
    """Return the share of bootstrap resamples (m,) of the samples in which each candidate is chosen."""
    generator = np.random.default_rng(0)
    samples = losses.shape[1]
    counts = np.zeros(len(losses))
    for _ in range(RESAMPLES):
        weights = np.bincount(generator.integers(samples, size=samples), minlength=samples)
        counts[choose(losses @ weights / samples, errors, sizes)] += 1
    return counts / RESAMPLES


def _evidence(whole: Objective, fitted: Mapping[str, Calibrator]) -> tuple[float, float]:
    """Return the logarithm of how many times as probable the samples are with `SAFE` as without.

    Beside it, the share of bootstrap resamples of the samples in which the ratio is large enough; they keep
    the temperature. The ratio counts the prior.
    """
    before, after = (penalised_loss(whole, fitted[name].parameters["temperature"]) for name in (LEAVE, SAFE))
    gains = np.subtract(*(_sample_losses(fitted[name], whole.logits, whole.labels) for name in (LEAVE, SAFE)))
    of_prior = before - after - gains.sum()
    draws = np.random.default_rng(0).integers(len(gains), size=(RESAMPLES, len(gains)))
    enough = gains[draws].sum(axis=1) + of_prior >= math.log(LEAST_RATIO)
    return before - after, float(enough.mean())


def _split_gap(val: Split, test: Split) -> float:
    """Return by how many standard errors the log-loss as trained is higher on test than on validation."""
    trained = calibrator_class(LEAVE)().fit(val.logits, val.labels)
    before, after = (_sample_losses(trained, split.logits, split.labels) for split in (val, test))
    error = math.sqrt(sum(losses.var(ddof=1) / len(losses) for losses in (before, after) if len(losses) > 1))
    return float((after.mean() - before.mean()) / error) if error > 0 else 0.0


class _Measured(NamedTuple):
    """How a calibrator does on samples that it was not fitted to."""

    scores: dict[str, float]
    """`SCORES`, and the log-loss minus that as trained with the bounds of its interval."""
    reliability: dict[str, list]


def _measured(logs: Array, labels: NDArray[np.int64], trained: Array, context: Context) -> _Measured:
    """Return how log-probabilities (n, k) do, and how that differs from the log-losses as trained (n,)."""
    predictions = Predictions.from_logs(logs, labels)
    scores = {score: metric_value(score, predictions, context.bins, context.adaece) for score in SCORES}
    reduced = reduce_predictions(predictions, context.bins, compared=False)
    change, interval = mean_change(reduced.losses, trained)
    return _Measured(scores | {"nll_change": change, **vars(interval)}, reduced.reliability)


def _test_results(
    fitted: Mapping[str, Calibrator], known: Mapping[FitKey, SavedFit], test: Split, context: Context
) -> dict[str, _Measured]:
    """Return how each calibrator does on the test split; what is known is not computed again."""
    trained = _sample_losses(fitted[LEAVE], test.logits, test.labels)
    found = {}
    for name, calibrator in fitted.items():
        if (name, _criterion(name)) in known:
            found[name] = _known_result(known[name, _criterion(name)])
        else:
            found[name] = _measured(calibrator.predict_log_proba(test.logits), test.labels, trained, context)
    return found


def _known_result(fit: SavedFit) -> _Measured:
    scores = {score: fit.scores[score] for score in SCORES}
    changes = dict(zip(("nll_change", "low", "high"), fit.diagnostics["nll_change"], strict=True))
    reliability = {name: fit.diagnostics[name] for name in ("count", "confidence", "accuracy")}
    return _Measured(scores | changes, reliability)
