"""All calibration methods and criteria of one run: metric rows, fits, search surfaces, diagnostics."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.calibrators import (
    AS_TRAINED,
    Calibrator,
    Context,
    FocalMap,
    calibrator_class,
    load_calibrator,
)
from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.calibration.files.logits_io import RunLogits
from focalcal.calibration.files.tidy import COLUMNS, score_rows
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import NoMinimumError, temperature_grid
from focalcal.calibration.metrics import metric_value
from focalcal.calibration.scores.diagnostics import (
    FitKey,
    ReducedPredictions,
    diagnose,
    reduce_predictions,
)
from focalcal.calibration.scores.predictions import Predictions
from focalcal.common.csv_rows import read_rows, write_rows
from focalcal.common.io import atomic_output, read_json, write_json

Evaluation = tuple[dict[str, dict[str, float]], ReducedPredictions]
"""Scores of one fit by split and metric, and what is kept of its test predictions."""


@dataclass(frozen=True)
class Calibration:
    """The result of `calibrate`."""

    rows: list[dict[str, Any]]
    """One row per method, criterion, split and metric, with the keys `tidy.COLUMNS`."""
    fits: dict[str, Any]
    """What was fitted, how well and at what cost, and which methods do not apply and why."""
    surfaces: dict[str, Any]
    """`gammas` (g,), `temperatures` (t,) and each criterion on the validation split, float64 (g, t)."""
    diagnostics: dict[str, Any]
    """On the test split: `diagnostics.diagnose` of all fits."""


def calibrate(logits: RunLogits, spec: Mapping[str, Any]) -> Calibration:
    """Return all that is computed from the logits of a run and the fits of a calibration job's `spec`."""
    run, context = spec["run"], context_of(spec)
    objective = Objective(logits.val.logits, logits.val.labels, context.bins, context.adaece)
    surfaces = validation_surfaces(objective, context)
    evaluator = _Evaluator(logits, context)
    rows: list[dict[str, Any]] = []
    fits: list[dict[str, Any]] = []
    reduced: dict[FitKey, ReducedPredictions] = {}
    skipped: list[dict[str, str]] = []
    for method in spec["methods"]:
        reason = why_not_applicable(method, run, logits.val.logits.shape[1])
        if reason:
            skipped.append({"method": method, "reason": reason})
            continue
        own = METHODS[method].criteria
        for criterion in spec["criteria"] if own is None else own or (None,):
            calibrator = calibrator_class(method).from_context(replace(context, criterion=criterion))
            try:
                fit = calibrator.fit_objective(objective, scored=False).to_record()
            except NoMinimumError as error:
                skipped.append({"method": method, "reason": f"no fit was found: {error}"})
                continue
            scores, reduced[method, criterion] = evaluator.evaluate(calibrator, METHODS[method].compared)
            for split, values in scores.items():
                rows.extend(score_rows(run, fit, split, values))
            if fit["validation_score"] is None:
                fit["validation_score"] = scores["val"].get(criterion)
            fit["test_score"] = scores["test"].get(criterion)
            if criterion is not None and criterion not in METRICS:
                fit["test_score"] = calibrator.score(logits.test.logits, logits.test.labels)
            fits.append(fit)
    record = {"run": dict(run), "fits": fits, "not_applicable": skipped}
    diagnostics = {
        "run": dict(run),
        "bins": context.bins,
        **diagnose(reduced, evaluator.as_trained.losses, context.bins, spec["resamples"]),
    }
    return Calibration(rows, record, surfaces, diagnostics)


def why_not_applicable(method: str, run: Mapping[str, Any], classes: int) -> str:
    """Return why a method does not apply to a run with this many classes, "" if it does."""
    declared = METHODS[method]
    if declared.needs_training_gamma and run["gamma"] is None:
        if not run["loss"]:
            return "the training loss is not given (--loss); this method needs its gamma"
        return f"loss {run['loss']!r} is not focal loss of one known gamma, which this method needs"
    if declared.most_classes is not None and classes > declared.most_classes:
        return f"{classes} classes; this method applies to at most {declared.most_classes}"
    return ""


def context_of(spec: Mapping[str, Any]) -> Context:
    """Return the context of a spec's calibrators."""
    return Context(
        training_gamma=spec["run"]["gamma"],
        gammas=tuple(float(gamma) for gamma in spec["gammas"]),
        temperatures=temperature_grid(**spec["temperatures"]),
        bins=spec["bins"],
        adaece=spec["adaece"],
    )


def validation_surfaces(objective: Objective, context: Context) -> dict[str, NDArray]:
    """Return the surfaces of all criteria over gamma 0 (temperature scaling) and the configured gammas."""
    gammas = (0.0, *context.gammas)
    if context.training_gamma is not None:  # one pass over the logits also serves methods with this gamma
        objective.surfaces((*gammas, context.training_gamma), context.temperatures)
    surfaces = objective.surfaces(gammas, context.temperatures)
    return {"gammas": np.array(gammas), "temperatures": context.temperatures, **surfaces}


def write_calibration(
    result: Calibration,
    origin: Mapping[str, Any],
    metrics_path: str | os.PathLike[str],
    fits_path: str | os.PathLike[str],
    surfaces_path: str | os.PathLike[str],
    diagnostics_path: str | os.PathLike[str],
) -> None:
    """Write the four files, each atomically, with the same bytes for the same result.

    `origin` records in fits.json by which settings and code they were made.
    """
    write_rows(metrics_path, result.rows, COLUMNS)
    write_json(fits_path, {**result.fits, **origin})
    write_json(diagnostics_path, result.diagnostics)
    with atomic_output(surfaces_path) as partial:
        np.savez_compressed(partial, **result.surfaces)


class SavedFit(NamedTuple):
    """A fit that a calibration job wrote, and how it does on the test split."""

    record: Mapping[str, Any]
    """As `load_calibrator` takes it."""
    scores: Mapping[str, float]
    """Test scores by metric."""
    diagnostics: Mapping[str, Any]
    """As `diagnostics.diagnose` describes a fit."""


def read_saved_fits(
    fits_path: str | os.PathLike[str],
    metrics_path: str | os.PathLike[str],
    diagnostics_path: str | os.PathLike[str],
) -> dict[FitKey, SavedFit]:
    """Return each fit of a calibration job, by method and criterion, from what `write_calibration` wrote."""
    scores: dict[FitKey, dict[str, float]] = {}
    for row in read_rows(metrics_path):
        if row["split"] == "test":
            key = (row["method"], row["criterion"] or None)
            scores.setdefault(key, {})[row["metric"]] = float(row["value"])
    described = {(fit["method"], fit["criterion"]): fit for fit in read_json(diagnostics_path)["fits"]}
    records = {(fit["method"], fit["criterion"]): fit for fit in read_json(fits_path)["fits"]}
    return {key: SavedFit(record, scores[key], described[key]) for key, record in records.items()}


class _Evaluator:
    """Predicts with one fit after the other, once on each split; equal focal maps share the result.

    Only what predictions are reduced to is kept: those of all fits would not fit into memory for a thousand
    classes.
    """

    def __init__(self, logits: RunLogits, context: Context) -> None:
        self._splits = vars(logits)
        self._context = context
        self._of_focal_maps: dict[tuple[float, float, bool], Evaluation] = {}
        _, self.as_trained = self.evaluate(load_calibrator(AS_TRAINED), compared=True)

    def evaluate(self, calibrator: Calibrator, compared: bool) -> Evaluation:
        """Return every metric of the catalogue by split, NaN where undefined, and reduced test predictions.

        `compared` says whether these include what paired comparisons need.
        """
        if type(calibrator).log_map is not FocalMap.log_map:
            return self._evaluation(calibrator, compared)
        key = (calibrator.parameters["gamma"], calibrator.parameters["temperature"], compared)
        if key not in self._of_focal_maps:
            self._of_focal_maps[key] = self._evaluation(calibrator, compared)
        return self._of_focal_maps[key]

    def _evaluation(self, calibrator: Calibrator, compared: bool) -> Evaluation:
        bins, variant = self._context.bins, self._context.adaece
        scores = {}
        for name, split in self._splits.items():
            predictions = Predictions.from_logs(calibrator.predict_log_proba(split.logits), split.labels)
            scores[name] = {metric: metric_value(metric, predictions, bins, variant) for metric in METRICS}
        # The test split comes last.
        return scores, reduce_predictions(predictions, bins, compared=compared)
