"""Scores of calibrators by training loss: one panel per score of a dataset and model, one row per loss."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from focalcal.calibration.catalogue import METHODS, METRICS, Metric
from focalcal.reporting.figures.style import (
    GREY,
    legend_below,
    method_handles,
    method_style,
    panels,
    plain_log,
    setting_title,
)
from focalcal.reporting.products import figure
from focalcal.reporting.text import natural_order
from focalcal.training.appearance import loss_label

SHOWN = ("fts", "ts", "none")
"""Calibrators, the last drawn on top."""


@dataclass(frozen=True)
class ScorePanel:
    """Means and spreads of a score in the units that people see: one row per loss, one column per method."""

    title: str
    label: str
    means: pd.DataFrame
    spreads: pd.DataFrame


@figure(
    of="overview",
    order=20,
    heading="Losses before and after calibration",
    caption="Test scores by training loss, for each dataset and model with several losses: as trained, after "
    "TS and after FTS. Points are means over n seeds, thick bars one standard deviation to either side.",
)
def losses_compared(frame: pd.DataFrame) -> Figure | None:
    """Return each score of the table by loss; None if no dataset and model has several losses."""
    groups = {name: rows for name, rows in by_dataset_model(frame).items() if len(rows) > 1}
    shown = [metric for metric in METRICS.values() if f"{metric.id}_none_mean" in frame]
    found = []
    for name, rows in groups.items():
        methods = [method for method in SHOWN if f"{shown[0].id}_{method}_mean" in frame]
        # One title stands above all panels of a dataset and model.
        titles = [setting_title(name, rows[f"{shown[0].id}_none_seeds"].dropna()), *[""] * len(shown)]
        by_loss = rows.set_index("loss")
        found += [score_panel(*of, by_loss, methods) for of in zip(titles, shown, strict=False)]
    if not found:
        return None
    drawn = draw_scores(found, SHOWN, columns=len(shown) * min(2, len(groups)), width=2.9)
    legend_below(drawn, method_handles(method for method in SHOWN[::-1] if method in found[0].means))
    return drawn


def score_panel(title: str, metric: Metric, rows: pd.DataFrame, methods: Sequence[str]) -> ScorePanel:
    """Return the panel of one metric from rows of the table `overview`, indexed by loss."""
    means, spreads = (
        pd.DataFrame({m: metric.factor * rows[f"{metric.id}_{m}_{part}"].astype(float) for m in methods})
        for part in ("mean", "std")
    )
    return ScorePanel(title, f"test {metric.inline}", means, spreads)


def draw_scores(
    found: Sequence[ScorePanel], methods: Sequence[str], columns: int, width: float, **shared: Any
) -> Figure:
    """Return the panels side by side: a line joins the means of a loss, a thick bar is a mean's spread."""
    counts = [len(panel.means) for panel in found]
    most = [max(counts[i - i % columns :][:columns]) for i in range(len(counts))]
    drawn, axes = panels(len(found), width, [0.24 * count + 0.7 for count in most], columns, **shared)
    for number, (axis, panel, tallest) in enumerate(zip(axes, found, most, strict=True)):
        places, losses = range(len(panel.means)), list(panel.means.index)
        axis.hlines(places, panel.means.min(axis=1), panel.means.max(axis=1), color=GREY, linewidth=0.8)
        for method in (name for name in methods if name in panel.means):
            mean, spread, style = panel.means[method], panel.spreads[method], method_style(method)
            # On a logarithmic axis a bar must not reach 0.
            low = np.maximum(mean - spread, 0.05 * mean)
            axis.hlines(places, low, mean + spread, color=style.color, linewidth=2.5)
            axis.plot(mean, places, **style.options(linestyle=""))
        axis.set(title=panel.title, xlabel=panel.label, ylim=(tallest - 0.4, -0.6))
        axis.set_yticks(places, map(loss_label, losses))
        axis.tick_params(labelleft=number % columns == 0 or losses != list(found[number - 1].means.index))
        axis.grid(visible=False, axis="y")
        plain_log(axis, "x")
    return drawn


def by_dataset_model(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows of each `dataset/model`, resnet8 before resnet20."""
    groups = dict(iter(rows.groupby(rows["dataset"] + "/" + rows["model"])))
    order = sorted(groups, key=lambda name: [natural_order(part) for part in name.split("/")])
    return {name: groups[name] for name in order}


@figure(
    of="arena_over_datasets",
    order=44,
    heading="Mean ranks over datasets",
    caption="Mean rank of each calibrator by test log-loss over the datasets of the networks trained here, "
    "one panel per kind of training loss; 1 is the lowest log-loss.",
)
def mean_ranks(frame: pd.DataFrame) -> Figure:
    """Return the mean ranks, calibrators in the order of their mean over the panels."""
    order = list(frame.groupby("method")["rank_mean"].mean().sort_values(kind="stable").index)
    families = dict(iter(frame.groupby("family", sort=False)))
    height = 0.2 * len(order) + 0.8
    drawn, axes = panels(len(families), 2.0, height, len(families), sharex=True, sharey=True)
    for axis, (family, rows) in zip(axes, families.items(), strict=True):
        for row in rows.itertuples():
            axis.plot(row.rank_mean, order.index(row.method), **method_style(row.method).options())
        axis.set(title=family, xlabel=f"mean rank, {rows['datasets_count'].iloc[0]} datasets")
    axes[0].set_yticks(range(len(order)), [METHODS[method].label for method in order])
    axes[0].set_ylim(len(order) - 0.4, -0.6)
    return drawn
