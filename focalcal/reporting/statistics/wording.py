"""Sentences about comparisons that claim no more than the runs can show."""

from focalcal.reporting.statistics.tests import PairedComparison
from focalcal.reporting.text import count_of, format_number

UNDECIDED = "too few runs"
OPEN = "no difference shown"
LOWER = "lower"
HIGHER = "higher"


def verdict(comparison: PairedComparison, alpha: float = 0.05) -> str:
    """Return `too few runs`, `no difference shown`, `lower` or `higher` for first against second.

    `lower` and `higher` need p below alpha (the adjusted one where there is one), an interval without zero
    (where there is one), and a mean on the side of most runs: p speaks of ranks, which a few large
    differences can outweigh in the mean. `too few runs` where not even runs that all agree would reach alpha.
    """
    if comparison.smallest_p >= alpha:
        return UNDECIDED
    p_value = comparison.p_value if comparison.adjusted_p is None else comparison.adjusted_p
    if p_value >= alpha or _interval_has_zero(comparison):
        return OPEN
    if comparison.mean_difference < 0 and comparison.wins > comparison.losses:
        return LOWER
    if comparison.mean_difference > 0 and comparison.losses > comparison.wins:
        return HIGHER
    return OPEN


def describe(
    comparison: PairedComparison,
    first: str,
    second: str,
    metric: str,
    *,
    scale: float = 1.0,
    unit: str = "",
    alpha: float = 0.05,
) -> str:
    """Return one paragraph: the mean difference, its uncertainty, the count of runs, and what follows.

    Differences are multiplied by `scale` and followed by `unit` (100 and " points" for a fraction shown in
    per cent).
    """
    return " ".join(
        [
            _difference(comparison, first, second, metric, scale, unit),
            _interval(comparison, scale, unit),
            _counts(comparison, first),
            _conclusion(comparison, first, second, metric, alpha),
        ]
    )


def _interval_has_zero(comparison: PairedComparison) -> bool:
    return comparison.interval is not None and comparison.interval.contains(0.0)


def _difference(c: PairedComparison, first: str, second: str, metric: str, scale: float, unit: str) -> str:
    size = f"{abs(c.mean_difference) * scale:.3f}{unit}"
    if c.mean_difference == 0:
        return f"Mean {metric} of {first} and {second} is the same over {_runs(c)}."
    direction = "lower" if c.mean_difference < 0 else "higher"
    return f"Mean {metric} of {first} is {size} {direction} than that of {second} over {_runs(c)}."


def _interval(c: PairedComparison, scale: float, unit: str) -> str:
    if c.interval is None:
        return "Some setting has only one seed, so there is no interval over seeds."
    low, high = (format_number(bound * scale, 3, signed=True) for bound in (c.interval.low, c.interval.high))
    return f"The bootstrap {c.interval.confidence * 100:g} % interval over seeds is {low} to {high}{unit}."


def _counts(c: PairedComparison, first: str) -> str:
    return f"{first} wins {c.wins}, ties {c.ties}, loses {c.losses}."


def _conclusion(c: PairedComparison, first: str, second: str, metric: str, alpha: float) -> str:
    outcome = verdict(c, alpha)
    if outcome == UNDECIDED:
        untied = c.wins + c.losses
        return (
            f"Inconclusive: {count_of(untied, 'untied run')} cannot give p < {alpha:g} "
            f"(the smallest possible is {c.smallest_p:.3g}), even if all agree."
        )
    p_text = f"Wilcoxon p = {c.p_value:.3g}"
    if c.adjusted_p is not None:
        p_text += f", {c.adjusted_p:.3g} after Holm's correction"
    if outcome == OPEN:
        doubt = ", and zero lies in the interval" if _interval_has_zero(c) else ""
        return f"No difference is shown ({p_text}{doubt})."
    over = "" if c.interval is None else " over seeds"
    return f"{metric} of {first} is {outcome} than that of {second} beyond chance{over} ({p_text})."


def _runs(c: PairedComparison) -> str:
    runs = count_of(c.runs, "run")
    return runs if c.groups == 1 else f"{runs} in {c.groups} settings"
