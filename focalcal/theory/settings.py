"""What the theory stage computes: one frozen record read from the JSON spec of its rules."""

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from focalcal.common.errors import UserError

FEWEST_POINTS_ON_A_LINE = 3
"""Matching temperatures that a fitted line takes at least: with two it would have no residual."""


@dataclass(frozen=True)
class TheorySettings:
    """The theory stage's settings; each default is the papers' value, or as fine as is quick."""

    gammas: tuple[float, ...] = tuple(round(0.1 * step, 10) for step in range(1, 101))
    """gammas of the bounds and thresholds curves."""
    max_logit: float = 20.0
    """Largest |logit| of the finite bounds (K24: 20)."""
    scanned_gammas: tuple[float, ...] = (0.5, 3.0, 4.0, 10.0)
    """gammas at which K24's slow temperature scan is repeated as a check."""
    certified_gammas: tuple[float, ...] = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)
    """gammas whose bound is certified for every logit by interval arithmetic."""
    matching_classes: tuple[int, ...] = (2, 3, 4)
    """Class counts for which the closest temperature is found (2 to 10)."""
    matching_gammas: tuple[float, ...] = tuple(round(0.25 * step, 10) for step in range(1, 41))
    """gammas at which the closest temperature is found."""
    matching_max_logit: float = 5.0
    """Half width of the logit box of the matching (K24: 5)."""
    sensitivity_gammas: tuple[float, ...] = (0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0)
    """gammas at which the matching is repeated in other boxes."""
    sensitivity_max_logits: tuple[float, ...] = (1.0, 2.0, 3.0, 10.0)
    """Half widths of those other boxes."""
    fit_ranges: tuple[tuple[float, float], ...] = ((0.0, 10.0), (0.0, 5.0), (0.0, 3.0), (1.0, 10.0))
    """Ranges of gamma on which 1/T is fitted by a line."""
    linear_model_samples: int = 500
    """Training points of the linear-model experiment; it is tested on four times as many."""
    linear_model_steps: int = 5000
    """Gradient steps of the linear-model experiment; its weights settle well before."""
    linear_model_seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    """Seeds of the linear-model experiment."""
    linear_model_spreads: tuple[float, ...] = (0.1, 0.5, 1.0)
    """Standard deviations of its clusters, whose means are 2 apart."""


READ_BY = {
    "theory_tables": (
        "gammas",
        "max_logit",
        "scanned_gammas",
        "certified_gammas",
        "matching_classes",
        "matching_gammas",
        "matching_max_logit",
        "sensitivity_gammas",
        "sensitivity_max_logits",
        "fit_ranges",
    ),
    "theory_checks": (
        "linear_model_samples",
        "linear_model_steps",
        "linear_model_seeds",
        "linear_model_spreads",
    ),
}
"""The settings that each rule reads, and so the ones whose change reruns it."""


def job_settings(section: str, rule: str) -> str:
    """Return the settings that one rule reads of a theory section, defaults filled in; both as JSON."""
    settings = asdict(theory_settings(section))
    return json.dumps({key: settings[key] for key in READ_BY[rule]}, sort_keys=True)


def theory_settings(spec: str) -> TheorySettings:
    """Return the settings in the JSON object `spec`; keys left out keep their defaults."""
    try:
        given = json.loads(spec)
    except json.JSONDecodeError as error:
        raise UserError(f"--spec must be a JSON object, got {spec!r} ({error})") from None
    if not isinstance(given, dict):
        raise UserError(f"--spec must be a JSON object, got {spec!r}")
    known = {field.name for field in fields(TheorySettings)}
    unknown = sorted(set(given) - known)
    if unknown:
        raise UserError(f"theory: unknown key {unknown[0]!r}; allowed are {', '.join(sorted(known))}")
    return TheorySettings(**{key: _frozen(value) for key, value in given.items()})


def check_fit_ranges(settings: TheorySettings) -> None:
    """Raise a UserError for a range of gammas that has too few points for a line."""
    for low, high in settings.fit_ranges:
        inside = sum(low < gamma <= high for gamma in settings.matching_gammas)
        if inside < FEWEST_POINTS_ON_A_LINE:
            raise UserError(
                f"config key 'theory.fit_ranges' has [{low}, {high}], in which (above {low}, up to {high}) "
                f"{inside} of 'theory.matching_gammas' lie; allowed: ranges that hold at least "
                f"{FEWEST_POINTS_ON_A_LINE}; change one of the two"
            )


def _frozen(value: Any) -> Any:
    """Return `value` with lists turned into tuples, at every depth."""
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
