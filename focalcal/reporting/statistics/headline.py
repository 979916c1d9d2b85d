"""The comparison the report opens with, in numbers and in plain sentences."""

from typing import Any

import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS, Metric
from focalcal.reporting.records.measurements import RUN, SETTING, chosen_fits
from focalcal.reporting.statistics.comparisons import HEADLINE, compare_methods
from focalcal.reporting.statistics.tests import PairedComparison
from focalcal.reporting.statistics.wording import HIGHER, LOWER, UNDECIDED, describe, verdict
from focalcal.reporting.text import format_number
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
        "means": _mean_scores(rows, fits, shown),
        "best_as_trained": _best_losses(rows, shown),
        "comparison": None if comparison is None else _comparison(comparison, shown),
    }


def _mean_scores(rows: pd.DataFrame, fits: dict[str, str], metric: Metric) -> list[dict[str, Any]]:
    """Return the mean score of each compared calibrator over the runs that have all of them."""
    methods = [method for method in COMPARED if method in fits]
    sides = [
        rows[(rows["method"] == method) & (rows["criterion"] == fits[method])]
        .set_index(RUN)["value"]
        .rename(method)
        for method in methods
    ]
    if not sides:
        return []
    together = pd.concat(sides, axis=1, join="inner").groupby(level=SETTING).mean().mean()
    unit = " %" if metric.factor == 100 else ""
    return [
        {
            "method": method,
            "name": METHODS[method].name,
            "value": float(together[method]),
            "text": f"{_shown(together[method], metric)}{unit}",
        }
        for method in methods
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
                "score": _shown(best["value"], metric),
                "cross_entropy": "" if baseline.empty else _shown(baseline.iloc[0], metric),
            }
        )
    return found


def _comparison(comparison: PairedComparison, metric: Metric) -> dict[str, Any]:
    unit, outcome = metric.difference_unit, verdict(comparison)
    difference = comparison.mean_difference * metric.factor
    first, second = (METHODS[method].label for method in HEADLINE)
    return {
        "verdict": outcome,
        "answer": _short_answer(outcome, metric.name),
        "difference": f"{format_number(difference, metric.decimals + 1, signed=True)}{unit}",
        "outcomes": {name: getattr(comparison, name) for name in ("wins", "ties", "losses")},
        "detail": describe(comparison, first, second, f"test {metric.name}", scale=metric.factor, unit=unit),
    }


def _shown(value: float, metric: Metric) -> str:
    return format_number(value * metric.factor, metric.decimals)


def _short_answer(outcome: str, label: str) -> str:
    """Return the short answer to "is FTS better than TS here?"."""
    return {
        LOWER: f"Yes: FTS has the lower test {label}, beyond chance over these runs.",
        HIGHER: f"No: FTS has the higher test {label}, beyond chance over these runs.",
        UNDECIDED: "Inconclusive: too few runs for any test to decide.",
    }.get(outcome, "Not shown: over these runs the two do not differ beyond chance.")
