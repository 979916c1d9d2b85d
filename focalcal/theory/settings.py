"""What the theory stage computes: the configuration's section `theory`, and what each rule reads of it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from annotated_types import Ge, Gt, Le, MinLen

from focalcal.common.constraints import UNIQUE, NonNegative, Section, Seed
from focalcal.common.errors import UserError

FEWEST_POINTS_ON_A_LINE = 3
"""Matching temperatures that a fitted line takes at least: with two it would have no residual."""

Gamma = Annotated[float, Ge(0.001), Le(100)]
Gammas = Annotated[tuple[Gamma, ...], MinLen(1), UNIQUE]
AnyGamma = Annotated[float, Gt(-1), Le(100)]
GammaRanges = Annotated[tuple[tuple[NonNegative, NonNegative], ...], MinLen(1)]
BoxHalfWidth = Annotated[float, Gt(0), Le(20)]


@dataclass(frozen=True)
class TheorySettings(Section):
    """What the theory stage computes. Each default is the papers' value, or as fine as is quick."""

    gammas: Gammas = tuple(round(0.1 * step, 10) for step in range(1, 101))
    """Values of gamma for the curves of bounds and thresholds."""
    max_logit: Annotated[float, Gt(0), Le(1000)] = 20.0
    """Largest absolute logit for the finite temperature bounds (K24: 20)."""
    scanned_gammas: tuple[Gamma, ...] = (0.5, 3.0, 4.0, 10.0)
    """Values of gamma at which K24's slow temperature scan is repeated as a check, under a second each."""
    certified_gammas: Gammas = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)
    """Values of gamma whose bound is proved for all logits by interval arithmetic; within about 1 above 5.635
    proofs get slow."""
    matching_classes: Annotated[tuple[Annotated[int, Ge(2), Le(10)], ...], MinLen(1), UNIQUE] = (2, 3, 4)
    """Class counts for which the temperature closest to Psi is found."""
    matching_gammas: Gammas = tuple(round(0.25 * step, 10) for step in range(1, 41))
    """Values of gamma at which that temperature is found."""
    matching_max_logit: BoxHalfWidth = 5.0
    """Half width of the box of logits over which the largest difference is taken (K24: 5); a wider box
    changes nothing."""
    sensitivity_gammas: Gammas = (0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0)
    """Values of gamma at which the matching is repeated in other boxes."""
    sensitivity_max_logits: tuple[BoxHalfWidth, ...] = (1.0, 2.0, 3.0, 10.0)
    """Half widths of those other boxes; an empty list skips them."""
    fit_ranges: GammaRanges = ((0.0, 10.0), (0.0, 5.0), (0.0, 3.0), (1.0, 10.0))
    """Ranges (above, up to) of gamma on which 1/T is fitted by a line, with three or more matching_gammas in
    each."""
    chosen_gammas: Annotated[tuple[AnyGamma, ...], MinLen(1), UNIQUE] = (
        *(-0.95, -0.75, -0.5, -0.25, 0.5, 1.0, 3.0, 10.0),
    )
    """Values of gamma, negative ones among them, as data choose them: bounds and closest temperatures."""
    chosen_classes: Annotated[tuple[Annotated[int, Ge(2), Le(1000)], ...], MinLen(1), UNIQUE] = (
        *(2, 3, 4, 10, 100, 1000),
    )
    """Class counts for these; of more than ten they take seconds per gamma."""
    linear_model_samples: Annotated[int, Ge(40), Le(100_000)] = 500
    """Training points of the linear-model experiment (M20 App. G); it is tested on four times as many."""
    linear_model_steps: Annotated[int, Ge(1), Le(1_000_000)] = 5000
    """Gradient steps of the linear-model experiment; its weights settle well before 5000."""
    linear_model_seeds: Annotated[tuple[Seed, ...], MinLen(1), UNIQUE] = (0, 1, 2, 3, 4)
    """Random seeds of the linear-model experiment."""
    linear_model_spreads: Annotated[tuple[Annotated[float, Gt(0), Le(1000)], ...], MinLen(1), UNIQUE] = (
        0.1,
        0.5,
        1.0,
    )
    """Standard deviations of the linear model's clusters, whose means are 2 apart; M20 states none."""


def job_settings(section: Mapping[str, Any], rule: str) -> dict[str, Any]:
    """Return the settings that one rule reads of the configuration's section `theory`, defaults filled in.

    A change of these settings reruns the rule: theory_checks reads those of the linear model, theory_tables
    all others.
    """
    is_for_checks = rule == "theory_checks"
    settings = asdict(theory_settings(section))
    return {key: settings[key] for key in settings if key.startswith("linear_model_") == is_for_checks}


def theory_settings(given: Mapping[str, Any]) -> TheorySettings:
    """Return the settings of a mapping that satisfies the configuration's schema, defaults filled in."""
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
