"""The tables of matching temperatures and of the lines fitted to them."""

from collections.abc import Sequence

from focalcal.theory.matching import linear_fit, match_temperature
from focalcal.theory.settings import FEWEST_POINTS_ON_A_LINE, TheorySettings

Row = dict[str, float]


def matching_rows(settings: TheorySettings) -> list[Row]:
    """Return one row per class count, box and gamma: the closest temperature and the largest difference."""
    rows = []
    for classes in settings.matching_classes:
        rows += _rows_of_box(classes, settings.matching_max_logit, settings.matching_gammas)
        for max_logit in settings.sensitivity_max_logits:
            rows += _rows_of_box(classes, max_logit, settings.sensitivity_gammas)
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


def _rows_of_box(classes: int, max_logit: float, gammas: Sequence[float]) -> list[Row]:
    """Return the rows of one class count and box."""
    rows = []
    for gamma in gammas:
        temperature, max_error = match_temperature(gamma, classes, max_logit)
        rows.append(
            {
                "classes": classes,
                "max_logit": float(max_logit),
                "gamma": float(gamma),
                "temperature": temperature,
                "inverse_temperature": 1.0 / temperature,
                "max_error": max_error,
            }
        )
    return rows
