"""The tables of the theory stage: temperature bounds, matching temperatures, thresholds and gamma*."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

from focalcal.theory.bounds import (
    critical_gamma,
    initial_slope,
    minimising_logit,
    scanned_temperatures,
    theoretical_temperatures,
    tightest_temperatures,
)
from focalcal.theory.matching import linear_fit, match_temperature
from focalcal.theory.settings import FEWEST_POINTS_ON_A_LINE, TheorySettings
from focalcal.theory.thresholds import (
    gamma_star,
    largest_overconfident_gamma,
    largest_overconfident_gamma_near_uniform,
    overconfidence_threshold,
    underconfidence_threshold,
)

Row = dict[str, float]
MOST_CLASSES = 20


def tables(settings: TheorySettings) -> dict[str, list[Row]]:
    """Return the rows of each table by its name."""
    matching = matching_rows(settings)
    return {
        "bounds": bounds_rows(settings.gammas, settings.max_logit),
        "matching": matching,
        "matching_fits": fit_rows(matching, settings.fit_ranges),
        "thresholds": threshold_rows(settings.gammas),
        "overconfidence": overconfidence_rows(),
        "gamma_star": gamma_star_rows(),
        "chosen_gammas": chosen_rows(settings),
    }


def bounds_rows(gammas: Sequence[float], max_logit: float) -> list[Row]:
    """Return one row per gamma: K24's bounds, the tightest on |s| <= max_logit and on the whole line."""
    return [
        {
            "gamma": float(gamma),
            **_low_high("theory", theoretical_temperatures(gamma)),
            **_low_high("tightest", tightest_temperatures(gamma, max_logit)),
            "max_logit": float(max_logit),
            **_low_high("line", tightest_temperatures(gamma, math.inf)),
            "initial_slope": initial_slope(gamma),
            "minimising_logit": minimising_logit(gamma),
        }
        for gamma in gammas
    ]


def bounds_summary(scanned_gammas: Sequence[float], max_logit: float) -> dict[str, Any]:
    """Return the critical gamma, and K24's scan beside the exact bounds at `scanned_gammas`."""
    scans = [
        {
            "gamma": float(gamma),
            **_low_high("scan", scanned_temperatures(gamma, max_logit)),
            **_low_high("exact", tightest_temperatures(gamma, max_logit)),
        }
        for gamma in scanned_gammas
    ]
    return {"critical_gamma": critical_gamma(), "max_logit": float(max_logit), "scans": scans}


def matching_rows(settings: TheorySettings) -> list[Row]:
    """Return one row per class count, box and gamma: the closest temperature and the largest difference."""
    boxes = [(settings.matching_max_logit, settings.matching_gammas)]
    boxes += [(max_logit, settings.sensitivity_gammas) for max_logit in settings.sensitivity_max_logits]
    # A box may be among the others too, and then its gammas.
    places = dict.fromkeys(
        (classes, float(max_logit), float(gamma))
        for classes, (max_logit, gammas) in itertools.product(settings.matching_classes, boxes)
        for gamma in gammas
    )
    rows = []
    for classes, max_logit, gamma in places:
        temperature, max_error = match_temperature(gamma, classes, max_logit)
        rows.append(
            {
                "classes": classes,
                "max_logit": max_logit,
                "gamma": gamma,
                "temperature": temperature,
                "inverse_temperature": 1.0 / temperature,
                "max_error": max_error,
            }
        )
    return rows


def fit_rows(rows: Sequence[Row], fit_ranges: Sequence[Sequence[float]]) -> list[Row]:
    """Return the least-squares line of 1/T on gamma for each class count, box and range of gamma."""
    fits = []
    for classes, max_logit in dict.fromkeys((row["classes"], row["max_logit"]) for row in rows):
        for low, high in fit_ranges:
            chosen = [
                row
                for row in rows
                if (row["classes"], row["max_logit"]) == (classes, max_logit) and low < row["gamma"] <= high
            ]
            if len(chosen) < FEWEST_POINTS_ON_A_LINE:
                continue
            slope, intercept, residual = linear_fit(
                [row["gamma"] for row in chosen], [row["temperature"] for row in chosen]
            )
            fits.append(
                {
                    "classes": classes,
                    "max_logit": max_logit,
                    "gamma_above": float(low),
                    "gamma_to": float(high),
                    "points": len(chosen),
                    "slope": slope,
                    "intercept": intercept,
                    "largest_residual": residual,
                    "largest_error": max(row["max_error"] for row in chosen),
                }
            )
    return fits


def threshold_rows(gammas: Sequence[float]) -> list[Row]:
    """Return tau_oc and tau_uc = p0 (C21 Theorem 8, M20 Prop. 2) for each gamma."""
    return [
        {
            "gamma": float(gamma),
            "tau_oc": overconfidence_threshold(gamma),
            "tau_uc": underconfidence_threshold(gamma),
        }
        for gamma in gammas
    ]


def overconfidence_rows() -> list[Row]:
    """Return, for each class count, the gamma below which the focal minimiser can be overconfident."""
    return [
        {
            "classes": classes,
            "near_uniform_gamma": largest_overconfident_gamma_near_uniform(classes),
            "anywhere_gamma": largest_overconfident_gamma(classes),
        }
        for classes in range(2, MOST_CLASSES + 1)
    ]


def gamma_star_rows() -> list[Row]:
    """Return gamma*(p0) for p0 = 0.01, ..., 0.50, with the p0 that its inverse gives back."""
    rows = []
    for percent in range(1, 51):
        gamma = gamma_star(percent / 100.0)
        back = underconfidence_threshold(gamma) if gamma > 0 else 0.5
        rows.append({"p0": percent / 100.0, "gamma_star": gamma, "p0_back": back})
    return rows


def chosen_rows(settings: TheorySettings) -> list[Row]:
    """Return one row per class count and gamma: the closest temperature, and the bounds of two classes."""
    rows = []
    for classes, gamma in itertools.product(settings.chosen_classes, settings.chosen_gammas):
        temperature, max_error = match_temperature(gamma, classes, settings.matching_max_logit)
        rows.append(
            {
                "classes": classes,
                "gamma": float(gamma),
                "temperature": temperature,
                "max_error": max_error,
                **_low_high("theory", theoretical_temperatures(gamma)),
                **_low_high("line", tightest_temperatures(gamma, math.inf)),
            }
        )
    return rows


def _low_high(name: str, temperatures: tuple[float, float]) -> Row:
    """Return the two columns of a lower and an upper bound."""
    return {f"{name}_low": temperatures[0], f"{name}_high": temperatures[1]}
