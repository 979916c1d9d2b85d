"""The comparison the report opens with, in numbers and in sentences that claim no more than runs can show."""

from typing import Any

import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS, Metric
from focalcal.reporting.records.measurements import RUN, SETTING, chosen_fits
from focalcal.reporting.statistics.comparisons import HEADLINE, compare_methods, paired_scores
from focalcal.reporting.statistics.tests import (
    ALPHA,
    CONFIDENCE,
    HIGHER,
    LOWER,
    OPEN,
    UNDECIDED,
    PairedComparison,
)
from focalcal.reporting.text import count_of, format_number
from focalcal.training.appearance import loss_label

COMPARED = ("none", "ts", "fts")


def headline(frame: pd.DataFrame, metric: str, criterion: str) -> dict[str, Any]:
    """Return what was compared, the mean test score of each calibrator, and what follows; JSON-ready.

    Means are over settings (dataset, model, loss) of the mean over seeds, over the runs that have all
    compared calibrators. `comparison` is None if no run has both FTS and TS.
    """
    rows = frame[(frame["split"] == "test") & (frame["metric"] == metric)]
    fits = dict(chosen_fits(rows, criterion))
    shown, comparison = METRICS[metric], None
    if all(method in fits for method in HEADLINE):
        comparison = compare_methods(rows, *((method, fits[method]) for method in HEADLINE), metric)
    return {
        "metric": shown.name,
        "percent": shown.factor == 100,
        "criterion": METRICS[criterion].name,
        "counts": {
            "runs": len(frame[RUN].drop_duplicates()),
            "settings": len(frame[SETTING].drop_duplicates()),
            **{name: sorted(frame[name].unique().tolist()) for name in ("dataset", "model", "loss")},
            "seeds": int(frame.groupby(SETTING)["seed"].nunique().max()) if len(frame) else 0,
        },
        "means": _calibrator_means(rows, fits, shown),
        "best_as_trained": _best_losses(rows, shown),
        "comparison": None if comparison is None else _comparison(comparison, shown),
    }


def _calibrator_means(rows: pd.DataFrame, fits: dict[str, str], metric: Metric) -> list[dict[str, Any]]:
    """Return the mean score of each compared calibrator over the runs that have all of them."""
    compared = [(method, fits[method]) for method in COMPARED if method in fits]
    scores = paired_scores(rows, compared, metric.id)
    unit = " %" if metric.factor == 100 else ""
    return [
        {
            "method": method,
            "name": METHODS[method].name,
            "value": float(mean),
            "text": f"{_scaled(mean, metric)}{unit}",
        }
        for method, mean in scores.groupby(level=SETTING).mean().mean().items()
    ]


def _best_losses(rows: pd.DataFrame, metric: Metric) -> list[dict[str, str]]:
    """Return the loss with the lowest score as trained for each dataset and model, beside cross-entropy."""
    raw = rows[rows["method"] == "none"].groupby(SETTING)["value"].mean().reset_index()
    found = []
    for (dataset, model), group in raw.groupby(["dataset", "model"]):
        best = group.loc[group["value"].idxmin()]
        baseline = group[group["loss"] == "ce"]["value"]
        found.append(
            {
                "place": f"{dataset} · {model}",
                "loss": loss_label(best["loss"]),
                "score": _scaled(best["value"], metric),
                "cross_entropy": "" if baseline.empty else _scaled(baseline.iloc[0], metric),
            }
        )
    return found


def _comparison(comparison: PairedComparison, metric: Metric) -> dict[str, Any]:
    difference = format_number(comparison.mean_difference * metric.factor, metric.decimals + 1, signed=True)
    return {
        "verdict": comparison.verdict,
        "answer": _short_answer(comparison.verdict, metric.name),
        "difference": f"{difference}{metric.difference_unit}",
        "outcomes": {name: getattr(comparison, name) for name in ("wins", "ties", "losses")},
        "detail": describe_comparison(comparison, metric),
    }


def _scaled(value: float, metric: Metric) -> str:
    return format_number(value * metric.factor, metric.decimals)


def _short_answer(outcome: str, label: str) -> str:
    """Return the short answer to "is FTS better than TS here?"."""
    return {
        LOWER: f"Yes: FTS has the lower test {label}, beyond chance over these runs.",
        HIGHER: f"No: FTS has the higher test {label}, beyond chance over these runs.",
        UNDECIDED: "Inconclusive: too few runs for any test to decide.",
    }.get(outcome, "Not shown: over these runs the two do not differ beyond chance.")


def describe_comparison(comparison: PairedComparison, metric: Metric) -> str:
    """Return one paragraph: the mean difference, its uncertainty, the count of runs, and what follows."""
    first, second = (METHODS[method].label for method in HEADLINE)
    parts = [
        _difference(comparison, metric, first, second),
        _interval(comparison, metric),
        f"{first} wins {comparison.wins}, ties {comparison.ties}, loses {comparison.losses}.",
        _conclusion(comparison, metric, first, second),
    ]
    return " ".join(parts)


def _difference(c: PairedComparison, metric: Metric, first: str, second: str) -> str:
    runs = count_of(c.runs, "run") + ("" if c.groups == 1 else f" in {c.groups} settings")
    if c.mean_difference == 0:
        return f"Mean test {metric.name} of {first} and {second} is the same over {runs}."
    size = f"{abs(c.mean_difference) * metric.factor:.3f}{metric.difference_unit}"
    direction = LOWER if c.mean_difference < 0 else HIGHER
    return f"Mean test {metric.name} of {first} is {size} {direction} than that of {second} over {runs}."


def _interval(c: PairedComparison, metric: Metric) -> str:
    if c.interval is None:
        return "Some setting has only one seed, so there is no interval over seeds."
    bounds = (c.interval.low, c.interval.high)
    low, high = (format_number(bound * metric.factor, 3, signed=True) for bound in bounds)
    interval = f"{low} to {high}{metric.difference_unit}"
    return f"The bootstrap {CONFIDENCE * 100:g} % interval over seeds is {interval}."


def _conclusion(c: PairedComparison, metric: Metric, first: str, second: str) -> str:
    if c.verdict == UNDECIDED:
        return (
            f"Inconclusive: {count_of(c.wins + c.losses, 'untied run')} cannot give p < {ALPHA:g} "
            f"(the smallest possible is {c.smallest_p:.3g}), even if all agree."
        )
    p_text = f"Wilcoxon p = {c.p_value:.3g}"
    if c.verdict == OPEN:
        doubt = ", and zero lies in the interval" if c.interval_has_zero else ""
        return f"No difference is shown ({p_text}{doubt})."
    over = "" if c.interval is None else " over seeds"
    compared = f"test {metric.name} of {first} is {c.verdict} than that of {second}"
    return f"{compared} beyond chance{over} ({p_text})."
