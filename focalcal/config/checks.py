"""Mistakes that no schema sees: names that do not exist, values that do not fit each other."""

import json
import re
from collections.abc import Collection, Mapping
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

from focalcal.calibration import catalogue as calibration_catalogue
from focalcal.common.errors import UserError
from focalcal.common.extensions import FOLDER, KINDS, check_extensions, extension_names
from focalcal.common.messages import check_file, error_prefix, shown, unknown_name
from focalcal.config.sections import LogitsEntry, RecoverySection, ReportSection
from focalcal.data import registry
from focalcal.theory.settings import check_fit_ranges, theory_settings
from focalcal.training import catalogue as training_catalogue
from focalcal.training.models import catalogue as model_catalogue
from focalcal.training.recipes import check_recipe, recipe_from_dict

PLUMBING = True
MAXIMUM_GRID_POINTS = 100_000
MOST_CHARACTERS = 100_000
"""Linux takes no argument of more than 128 KiB."""
MOST_REPEATS = 19
PERIODIC_END = re.compile(rf"(.+)\1{{{MOST_REPEATS},}}$")
OWN_FILES = {"folder", "npz", "texts"}
"""Settings that make a dataset from the user's own files, which need not exist before a run uses it."""


def check_own_code(root: Path) -> None:
    """Raise a UserError for the first file in `extensions/` that cannot be used."""
    for file in sorted((root / FOLDER).glob("**/*.py")):
        place = file.relative_to(root)
        if place.parent.name not in KINDS and not any(part.startswith("_") for part in place.parts):
            raise UserError(
                f"{place} is found by no name; allowed: the folders {', '.join(KINDS)} in {FOLDER}; move it "
                f"to one of them, or begin its name with an underscore if others import it"
            )
    built_in = {
        "datasets": registry.entry_names(),
        # What the catalogue did not take over has the name of another loss.
        "losses": [
            name for name in extension_names("losses", root) if not training_catalogue.is_own_loss(name)
        ],
        "models": model_catalogue.BUILT_IN_MODELS,
        "calibrators": calibration_catalogue.BUILT_IN_METHODS,
        "metrics": calibration_catalogue.BUILT_IN_METRICS,
    }
    for kind, names in built_in.items():
        check_extensions(kind, names, root)


def check_runs(config: Mapping[str, Any], root: Path) -> None:
    """Raise a UserError for the first mistake in the names that `runs` and `logits` use."""
    for index, block in enumerate(config["runs"]):
        _check_block(config, f"runs[{index}]", block, root)
        for kind in ("datasets", "models", "losses"):
            for name in block[kind]:
                _check_periods(f"config key 'runs[{index}].{kind}'", name)
    for name, entry in config["logits"].items():
        for kind in ("dataset", "model", "loss"):
            _check_periods(f"config key 'logits.{name}.{kind}'", entry[kind])
        check_file(f"config key 'logits.{name}.path'", entry["path"])
        meant = training_catalogue.likely_loss(entry["loss"])
        if training_catalogue.known_loss(entry["loss"]) is None and meant:
            raise UserError(
                f"config key 'logits.{name}.loss' is {shown(entry['loss'])}; allowed: a loss by its id "
                f"(docs/names.md), or a name that is none, as not-stated; did you mean {meant!r}?"
            )
        with error_prefix(f"config key 'logits.{name}.loss'"):
            _check_gamma(entry["loss"])


def check_sections(config: Mapping[str, Any], datasets: Collection[str], root: Path) -> None:
    """Raise a UserError for the first mistake in the other sections; `datasets` are those of all runs."""
    _check_lengths(config)
    for name, settings in config["datasets"].items():
        if not OWN_FILES & set(settings):
            registry.job_spec(name, settings, root)
    for name, recipe in config["recipes"].items():
        with error_prefix(f"config key 'recipes.{name}'"):
            check_recipe(recipe_from_dict(recipe))
    _check_calibration(config["calibration"])
    for method in config.get("simulation", {}).get("methods", ()):
        _check_comparable("simulation.methods", method)
    _check_report(ReportSection(**config["report"]), config)
    _check_human_labels(config, datasets, root)
    check_fit_ranges(theory_settings(config["theory"]))
    with error_prefix("config key 'plan.images_per_second'"):
        for model in set(config["plan"]["images_per_second"]) - {"default"}:
            model_catalogue.find_model(model)


def check_logits_files(section: Mapping[str, Any]) -> None:
    """Raise a UserError that names the key of the first file of logits that cannot be used."""
    if not section:
        return
    # Imported here: only a configuration with logits needs NumPy at this point.
    from focalcal.calibration.files import imports  # noqa: PLC0415

    for name, values in section.items():
        entry = LogitsEntry(**values)
        with error_prefix(f"config key 'logits.{name}.path'"):
            imports.import_logits(Path(entry.path), entry.kind, halves=entry.split == "halves")


def _check_block(config: Mapping[str, Any], key: str, block: Mapping[str, Any], root: Path) -> None:
    """Raise a UserError for the first name in a block that does not exist or does not fit the others."""
    known = registry.dataset_names(config["datasets"], root)
    for dataset in block["datasets"]:
        if dataset not in known:
            repair = "for one of your own see docs/add-a-dataset.md"
            raise unknown_name(f"config key '{key}.datasets'", dataset, known, repair)
    if block["recipe"] not in config["recipes"]:
        raise unknown_name(f"config key '{key}.recipe'", block["recipe"], config["recipes"])
    for loss in block["losses"]:
        with error_prefix(f"config key '{key}.losses'"):
            training_catalogue.parse_loss(loss)
            _check_gamma(loss)
    for model, dataset in product(block["models"], block["datasets"]):
        spec = registry.job_spec(dataset, config["datasets"].get(dataset), root)
        with error_prefix(f"config key '{key}.models'"):
            model_catalogue.find_model(model)
        kind = registry.input_kind(spec)
        if kind is not None:
            with error_prefix(f"config key '{key}.models', dataset {dataset!r}"):
                model_catalogue.check_inputs(model, kind)


def _check_gamma(loss: str) -> None:
    """Raise a UserError for a gamma for which Psi is not computed, or a loss may overflow."""
    parsed = training_catalogue.known_loss(loss)
    largest = calibration_catalogue.LARGEST_GAMMA
    if parsed is not None and parsed.gamma is not None and parsed.gamma > largest:
        raise UserError(f"loss {loss!r}: gamma must be at most {largest:g}, the largest that Psi accepts")


def _check_periods(key: str, name: str) -> None:
    """Raise a UserError for a name that Snakemake takes for the sign of a rule that calls itself."""
    if PERIODIC_END.search(name):
        raise UserError(
            f"{key} has {shown(name)}, which ends with {MOST_REPEATS + 1} or more repetitions; allowed: at "
            f"most {MOST_REPEATS}, since Snakemake refuses more; choose another name"
        )


def _check_lengths(config: Mapping[str, Any]) -> None:
    """Raise a UserError for settings that are too long for a program's argument."""
    sections = {name: config[name] for name in ("calibration", "theory")}
    for group in ("recipes", "datasets"):
        sections |= {f"{group}.{name}": value for name, value in config[group].items()}
    for name, value in sections.items():
        length = len(json.dumps(value))
        if length > MOST_CHARACTERS:
            raise UserError(
                f"config key {name!r} is {length} characters long as JSON; allowed: at most "
                f"{MOST_CHARACTERS}, which a job's command line can take; shorten its lists"
            )


def _check_calibration(section: Mapping[str, Any]) -> None:
    """Raise a UserError for an unknown method, or for grids that are empty, too narrow or too large."""
    for method in section["methods"]:
        if method not in calibration_catalogue.METHODS:
            raise unknown_name("config key 'calibration.methods'", method, calibration_catalogue.METHODS)
    for method in section.get("sizes_methods", ()):
        _check_comparable("calibration.sizes_methods", method)
    chosen = section.get("sizes_methods") or section["methods"]
    if section.get("sizes") and "ts" not in chosen:
        key = "sizes_methods" if section.get("sizes_methods") else "methods"
        raise UserError(
            f"config key 'calibration.{key}' is {', '.join(chosen)}; allowed with 'calibration.sizes': a "
            f"list with ts, which all others are compared with; add it"
        )
    start, stop, step = (section["temperatures"][name] for name in ("start", "stop", "step"))
    if stop < start:
        raise UserError(
            f"config key 'calibration.temperatures.stop' is {stop}; allowed: at least start, which is {start}"
        )
    # In decimals, the largest temperature of the grid is exact.
    first, limit, width = (Decimal(str(value)) for value in (start, stop, step))
    last = float(first + (limit - first) // width * width)
    calibration_catalogue.check_ranges(section["methods"], section["gammas"], (start, last))
    points = (stop - start) / step * len(section["gammas"])
    if points > MAXIMUM_GRID_POINTS:
        raise UserError(
            f"config key 'calibration.temperatures.step' is {step}, which makes {points:.0f} grid points; "
            f"allowed: at most {MAXIMUM_GRID_POINTS}; take a larger step or fewer gammas"
        )


def _check_comparable(key: str, method: str) -> None:
    """Raise a UserError for a calibrator that is not fitted by log-loss alone."""
    comparable = calibration_catalogue.comparable_methods(calibration_catalogue.METHODS)
    if method not in comparable:
        repair = "they are fitted by log-loss, or not at all, whatever the training loss"
        raise unknown_name(f"config key '{key}'", method, comparable, repair)


def _check_report(report: ReportSection, config: Mapping[str, Any]) -> None:
    """Raise a UserError if the report is to show what calibration does not compute."""
    calibration = config["calibration"]
    if report.metric not in calibration_catalogue.METRICS:
        raise unknown_name("config key 'report.metric'", report.metric, calibration_catalogue.METRICS)
    if report.criterion not in calibration["criteria"]:
        raise unknown_name("config key 'report.criterion'", report.criterion, calibration["criteria"])
    # The default methods are shown as far as they are computed.
    for method in config["report"].get("reliability_methods", ()):
        if method not in calibration["methods"]:
            raise unknown_name("config key 'report.reliability_methods'", method, calibration["methods"])


def _check_human_labels(config: Mapping[str, Any], datasets: Collection[str], root: Path) -> None:
    """Raise a UserError if human labels name an unknown dataset or a missing file, or have no source."""
    known = {*registry.dataset_names(config["datasets"], root), *datasets}
    for name, source in RecoverySection(**config["recovery"]).human_labels.items():
        if name not in known:
            raise unknown_name("config key 'recovery.human_labels'", name, known)
        key = f"config key 'recovery.human_labels.{name}'"
        base = config["datasets"].get(name, {}).get("base", name)
        if source != registry.DOWNLOAD:
            check_file(key, source)
        elif "human_labels" not in registry.load_entry(base):
            raise UserError(
                f"{key} is {registry.DOWNLOAD!r}, but no source of human labels of {base!r} is known; "
                f"allowed: the path of a file"
            )
