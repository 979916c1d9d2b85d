"""Mistakes that no schema sees: names that do not exist, values that do not fit each other."""

import json
from collections.abc import Collection, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from focalcal.calibration import catalogue as calibration_catalogue
from focalcal.common.errors import UserError
from focalcal.data import registry
from focalcal.reporting.recovery_layout import DOWNLOAD
from focalcal.reporting.settings import DEFAULTS as REPORT_DEFAULTS
from focalcal.theory.settings import check_fit_ranges, theory_settings
from focalcal.training import catalogue as training_catalogue
from focalcal.training.recipes import recipe_from_dict
from focalcal.workflow.validation import check_file, naming, unknown_name

MAXIMUM_GRID_POINTS = 100_000
OWN_FILES = {"folder", "npz"}
"""Settings that make a dataset out of files of the user's, which need not be there before a run uses it."""


def check_sections(config: Mapping[str, Any], datasets: Collection[str], root: Path) -> None:
    """Raise a UserError for the first mistake; `datasets` are those of the configuration's runs."""
    _check_datasets(config["datasets"], root)
    for name, recipe in config["recipes"].items():
        with naming(f"config key 'recipes.{name}'"):
            recipe_from_dict(recipe)
    _check_calibration(config["calibration"])
    _check_report(config["report"], config["calibration"])
    _check_human_labels(config, datasets, root)
    check_fit_ranges(theory_settings(json.dumps(config["theory"])))
    with naming("config key 'plan.images_per_second'"):
        for model in set(config["plan"]["images_per_second"]) - {"default"}:
            training_catalogue.check_model(model)


def _check_datasets(section: Mapping[str, Any], root: Path) -> None:
    """Raise a UserError for settings or variants of no built-in dataset, or that it does not have."""
    for name, settings in section.items():
        if not OWN_FILES & set(settings or {}):
            registry.job_spec(name, settings, root)


def _check_calibration(section: Mapping[str, Any]) -> None:
    """Raise a UserError for an unknown method, or grids that are empty, too narrow or absurdly large."""
    for method in section["methods"]:
        if method not in calibration_catalogue.METHODS:
            raise unknown_name("config key 'calibration.methods'", method, calibration_catalogue.METHODS)
    start, stop, step = (section["temperatures"][name] for name in ("start", "stop", "step"))
    if stop < start:
        raise UserError(
            f"config key 'calibration.temperatures.stop' is {stop}; allowed: at least start, which is {start}"
        )
    calibration_catalogue.check_ranges(
        section["methods"], section["gammas"], (start, _last(start, stop, step))
    )
    points = (stop - start) / step * len(section["gammas"])
    if points > MAXIMUM_GRID_POINTS:
        raise UserError(
            f"config key 'calibration.temperatures.step' is {step}, which makes {points:.0f} grid points; "
            f"allowed: at most {MAXIMUM_GRID_POINTS}; take a larger step or fewer gammas"
        )


def _last(start: float, stop: float, step: float) -> float:
    """Return the largest temperature of a grid, which is counted in decimals."""
    first, end, width = (Decimal(str(value)) for value in (start, stop, step))
    return float(first + (end - first) // width * width)


def _check_report(section: Mapping[str, Any], calibration: Mapping[str, Any]) -> None:
    """Raise a UserError where the report is to show what calibration does not make."""
    criterion = section.get("criterion", REPORT_DEFAULTS["criterion"])
    if criterion not in calibration["criteria"]:
        raise unknown_name("config key 'report.criterion'", criterion, calibration["criteria"])
    for method in section.get("reliability_methods", ()):
        if method not in calibration["methods"]:
            raise unknown_name("config key 'report.reliability_methods'", method, calibration["methods"])


def _check_human_labels(config: Mapping[str, Any], datasets: Collection[str], root: Path) -> None:
    """Raise a UserError for human labels of no dataset, of no file, or that nobody serves."""
    known = {*registry.dataset_names(config["datasets"], root), *datasets}
    for name, source in config["recovery"].get("human_labels", {}).items():
        if name not in known:
            raise unknown_name("config key 'recovery.human_labels'", name, known)
        key = f"config key 'recovery.human_labels.{name}'"
        base = (config["datasets"].get(name) or {}).get("base", name)
        if source != DOWNLOAD:
            check_file(key, source)
        elif "human_labels" not in registry.load_entry(base):
            raise UserError(
                f"{key} is {DOWNLOAD!r}, but no source of human labels of {base!r} is known; "
                f"allowed: the path of a file"
            )
