"""The comparison the report opens with, in numbers and in plain sentences."""

from typing import Any

import pandas as pd

from focalcal.reporting.records.measurements import RUN, SETTING
from focalcal.reporting.statistics.comparisons import compare_methods
from focalcal.reporting.statistics.tests import PairedComparison
from focalcal.reporting.statistics.wording import HIGHER, LOWER, UNDECIDED, describe, verdict
from focalcal.reporting.tables.cells import loss_name, number
from focalcal.reporting.tables.overview import SCALES, chosen_fits, method_name, metric_name

COMPARED = ("none", "ts", "fts")
FULL_NAMES = {
    "none": "as trained",
    "ts": "temperature scaling (TS)",
    "fts": "focal temperature scaling (FTS)",
}


def headline(frame: pd.DataFrame, metric: str, criterion: str) -> dict[str, Any]:
    """Return what was compared, the mean test score of each calibrator, and what follows; JSON-ready.

    Means are over settings (dataset, model, loss) of the mean over seeds, over the runs that have all
    compared calibrators. `comparison` is None where no run has both FTS and TS.
    """
    rows = frame[(frame["split"] == "test") & (frame["metric"] == metric)]
    fits = dict(chosen_fits(rows, criterion))
    scale = SCALES[metric]
    comparison = None
    if "fts" in fits and "ts" in fits:
        comparison = compare_methods(rows, ("fts", fits["fts"]), ("ts", fits["ts"]), metric)
    return {
        "metric": metric_name(metric),
        "percent": scale.factor == 100,
        "criterion": metric_name(criterion),
        "counts": {
            "runs": len(frame[RUN].drop_duplicates()),
            "settings": len(frame[SETTING].drop_duplicates()),
            **{name: sorted(frame[name].unique().tolist()) for name in ("dataset", "model", "loss")},
            "seeds": int(frame.groupby(SETTING)["seed"].nunique().max()) if len(frame) else 0,
        },
        "means": _means(rows, fits, metric),
        "best_as_trained": _best_as_trained(rows, metric),
        "comparison": None if comparison is None else _comparison(comparison, metric),
    }


def _means(rows: pd.DataFrame, fits: dict[str, str], metric: str) -> list[dict[str, Any]]:
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
    scale = SCALES[metric]
    unit = " %" if scale.factor == 100 else ""
    return [
        {
            "method": method,
            "name": FULL_NAMES[method],
            "value": float(together[method]),
            "text": f"{number(together[method] * scale.factor, scale.decimals)}{unit}",
        }
        for method in methods
    ]


def _best_as_trained(rows: pd.DataFrame, metric: str) -> list[dict[str, str]]:
    """Return for each place the loss with the least score as trained, beside cross-entropy."""
    raw = rows[rows["method"] == "none"].groupby(SETTING)["value"].mean().reset_index()
    scale, found = SCALES[metric], []
    for (dataset, model), group in raw.groupby(["dataset", "model"]):
        best = group.loc[group["value"].idxmin()]
        baseline = group[group["loss"] == "ce"]["value"]
        found.append(
            {
                "place": f"{dataset} · {model}",
                "loss": loss_name(best["loss"]),
                "score": number(best["value"] * scale.factor, scale.decimals),
                "cross_entropy": ""
                if baseline.empty
                else number(baseline.iloc[0] * scale.factor, scale.decimals),
            }
        )
    return found


def _comparison(comparison: PairedComparison, metric: str) -> dict[str, Any]:
    scale = SCALES[metric]
    unit = " points" if scale.factor == 100 else ""
    label = metric_name(metric)
    outcome = verdict(comparison)
    return {
        "verdict": outcome,
        "answer": _answer(outcome, label),
        "difference": number(comparison.mean_difference * scale.factor, scale.decimals + 1, signed=True)
        + unit,
        "outcomes": {name: getattr(comparison, name) for name in ("wins", "ties", "losses")},
        "detail": describe(
            comparison, method_name("fts"), method_name("ts"), f"test {label}", scale=scale.factor, unit=unit
        ),
    }


def _answer(outcome: str, label: str) -> str:
    """Return the short answer to "is FTS better than TS here?"."""
    return {
        LOWER: f"Yes: FTS has the lower test {label}, beyond chance over these runs.",
        HIGHER: f"No: FTS has the higher test {label}, beyond chance over these runs.",
        UNDECIDED: "Cannot be said: there are too few runs for any test to decide.",
    }.get(outcome, "Not shown: over these runs the two do not differ beyond chance.")
