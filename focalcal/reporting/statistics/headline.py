"""What the report opens with besides its answer: what was run, and which losses are best as trained."""

from typing import Any

import pandas as pd

from focalcal.calibration.catalogue import METRICS, Metric
from focalcal.reporting.records.measurements import RUN, SETTING
from focalcal.reporting.text import format_number
from focalcal.training.appearance import loss_label


def headline(frame: pd.DataFrame, metric: str) -> dict[str, Any]:
    """Return what there is, and the best training loss as trained by test `metric`; JSON-ready."""
    rows = frame[(frame["split"] == "test") & (frame["metric"] == metric)]
    shown = METRICS[metric]
    return {
        "metric": shown.name,
        "better": "highest" if shown.higher_is_better else "lowest",
        "percent": shown.factor == 100,
        "counts": {
            "runs": len(frame[RUN].drop_duplicates()),
            "settings": len(frame[SETTING].drop_duplicates()),
            **{name: sorted(frame[name].unique().tolist()) for name in ("dataset", "model", "loss")},
            "seeds": int(frame.groupby(SETTING)["seed"].nunique().max()) if len(frame) else 0,
        },
        "best_as_trained": _best_losses(rows, shown),
    }


def _best_losses(rows: pd.DataFrame, metric: Metric) -> list[dict[str, str]]:
    """Return the loss with the best score as trained for each dataset and model, beside cross-entropy."""
    raw = rows[rows["method"] == "none"].groupby(SETTING)["value"].mean().reset_index()
    found = []
    for (dataset, model), group in raw.groupby(["dataset", "model"]):
        place = group["value"].idxmax() if metric.higher_is_better else group["value"].idxmin()
        best = group.loc[place]
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


def _scaled(value: float, metric: Metric) -> str:
    return format_number(value * metric.factor, metric.decimals)
