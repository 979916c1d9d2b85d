"""All calibration methods and criteria of one run: tidy metric rows, fits, search surfaces."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration import calibrators, metrics
from focalcal.calibration.calibrators import Calibrator, Settings
from focalcal.calibration.catalogue import CRITERIA, METHODS, METRICS, check_ranges
from focalcal.calibration.kernels.focal_table import check_gammas
from focalcal.calibration.logits_io import RunLogits, Split
from focalcal.calibration.objective import Objective, check_temperatures
from focalcal.calibration.search import checked_temperatures, temperature_grid
from focalcal.calibration.tidy import as_csv
from focalcal.common.errors import UserError
from focalcal.common.io import atomic_output, write_json, write_text


@dataclass(frozen=True)
class Calibration:
    """The result of `calibrate`."""

    rows: list[dict[str, Any]]
    """One a method, criterion, split and metric, with the keys `tidy.COLUMNS`."""
    fits: dict[str, Any]
    """What was fitted, how well and at what cost, and which methods do not apply and why."""
    surfaces: dict[str, NDArray]
    """`gammas` (g,), `temperatures` (t,) and each criterion on the validation split, float64 (g, t)."""


def calibrate(logits: RunLogits, spec: Mapping[str, Any]) -> Calibration:
    """Return metrics, fits and surfaces of every method and criterion of a calibration job's `spec`."""
    run, settings = spec["run"], settings_of(spec)
    objective = Objective(logits.val.logits, logits.val.labels, settings.bins, settings.adaece)
    surfaces = validation_surfaces(objective, settings, run["gamma"])
    rows: list[dict[str, Any]] = []
    fits: list[dict[str, Any]] = []
    skipped: list[dict[str, str]] = []
    for name in spec["methods"]:
        if METHODS[name].needs_training_gamma and run["gamma"] is None:
            reason = f"loss {run['loss']!r} is not focal loss of one known gamma, which this method needs"
            skipped.append({"method": name, "reason": reason})
            continue
        for criterion in _criteria(name, spec["criteria"]):
            calibrator_class = getattr(calibrators, METHODS[name].class_name)
            calibrator = calibrator_class.configured(criterion, settings, run["gamma"])
            calibrator.fit_objective(objective)
            values = {
                split_name: metrics.all_of_logs(
                    calibrator.predict_log_proba(split.logits), split.labels, settings.bins, settings.adaece
                )
                for split_name, split in (("val", logits.val), ("test", logits.test))
            }
            fits.append(_fit_record(name, criterion, calibrator, logits.test, values["test"]))
            rows.extend(_rows(run, name, criterion, calibrator, values))
    record = {"run": dict(run), "fits": fits, "not_applicable": skipped}
    return Calibration(rows, record, surfaces)


def settings_of(spec: Mapping[str, Any]) -> Settings:
    """Return the search settings of a spec; a UserError names the key that is wrong."""
    for method in spec["methods"]:
        _check_name("methods", method, METHODS)
    for criterion in spec["criteria"]:
        _check_name("criteria", criterion, CRITERIA)
    gammas = tuple(float(gamma) for gamma in spec["gammas"])
    grid = spec["temperatures"]
    try:
        check_gammas(gammas)
        temperatures = checked_temperatures(temperature_grid(grid["start"], grid["stop"], grid["step"]))
        check_temperatures(temperatures)
        metrics.check_binning(spec["bins"], "mass", spec["adaece"])
    except ValueError as error:
        raise UserError(f"calibration settings: {error}") from None
    check_ranges(spec["methods"], gammas, (temperatures[0], temperatures[-1]))
    return Settings(gammas, temperatures, spec["bins"], spec["adaece"])


def validation_surfaces(
    objective: Objective, settings: Settings, training_gamma: float | None
) -> dict[str, NDArray]:
    """Return the surfaces of all criteria over gamma 0 (temperature scaling) and the configured gammas."""
    gammas = (0.0, *settings.gammas)
    if training_gamma is not None:  # one pass over the logits serves the methods that need this gamma, too
        objective.surfaces((*gammas, training_gamma), settings.temperatures)
    surfaces = objective.surfaces(gammas, settings.temperatures)
    return {"gammas": np.array(gammas), "temperatures": settings.temperatures, **surfaces}


def write(
    result: Calibration,
    origin: Mapping[str, Any],
    metrics_path: str | os.PathLike[str],
    fits_path: str | os.PathLike[str],
    surfaces_path: str | os.PathLike[str],
) -> None:
    """Write the three files, each atomically, with the same bytes for the same result.

    `origin` tells, in fits.json, by which settings and code they were made.
    """
    write_text(metrics_path, as_csv(result.rows))
    write_json(fits_path, {**result.fits, **origin})
    with atomic_output(surfaces_path) as partial:
        np.savez_compressed(partial, **result.surfaces)


def _criteria(method: str, configured: Sequence[str]) -> Sequence[str | None]:
    """Return the criteria a method is fitted by, [None] where it fits nothing."""
    own = METHODS[method].criteria
    return configured if own is None else own or [None]


def _fit_record(
    method: str, criterion: str | None, calibrator: Calibrator, test: Split, on_test: Mapping[str, float]
) -> dict[str, Any]:
    """Return what fits.json keeps of one fit."""
    test_score = on_test[criterion] if criterion in CRITERIA else None
    if criterion is not None and test_score is None:
        test_score = calibrator.score(test.logits, test.labels)
    return {
        "method": method,
        "criterion": criterion,
        "gamma": calibrator.gamma_,
        "temperature": calibrator.temperature_,
        "validation_score": calibrator.score_,
        "test_score": test_score,
        "evaluations": calibrator.evaluations_,
        "bound_hit": calibrator.bound_hit_,
        "gamma_bound_hit": calibrator.gamma_bound_hit_,
    }


def _rows(
    run: Mapping[str, Any],
    method: str,
    criterion: str | None,
    calibrator: Calibrator,
    values: Mapping[str, Mapping[str, float]],
) -> Iterator[dict[str, Any]]:
    """Yield the rows of one fit, whose `values` are split -> metric -> value; undefined metrics have none."""
    for split, by_metric in values.items():
        for metric in METRICS:
            if np.isnan(by_metric[metric]):
                continue
            yield {
                **{key: run[key] for key in ("dataset", "model", "loss", "seed")},
                "method": method,
                "criterion": criterion,
                "gamma": calibrator.gamma_,
                "temperature": calibrator.temperature_,
                "split": split,
                "metric": metric,
                "value": by_metric[metric],
            }


def _check_name(key: str, value: str, allowed: Sequence[str] | Mapping[str, Any]) -> None:
    if value not in allowed:
        raise UserError(
            f"calibration {key} has {value!r}; allowed: {', '.join(allowed)}; remove or respell it"
        )
