"""Figures across studies, from their tables: FTS against TS, and what training losses do to the ECE."""

from collections.abc import Mapping
from itertools import cycle

import pandas as pd
from matplotlib.figure import Figure

from focalcal.calibration.catalogue import METRICS
from focalcal.reporting.figures.forest import SHOWN_METRICS, Difference, ForestRow, draw_forest
from focalcal.reporting.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    PURPLE,
    VERMILION,
    Style,
    legend_below,
    method_handles,
    method_style,
    panels,
    plain_log,
)
from focalcal.training.appearance import loss_label, loss_order

STYLE_OF_FAMILIES = Style(BLUE, "o")
STYLES_OF_STUDIES = (
    Style(VERMILION, "s"),
    Style(BLUE, "D"),
    Style(GREEN, "^"),
    Style(PURPLE, "v"),
    Style(GREY, "o"),
)


def effects_figure(effects: Mapping[str, pd.DataFrame]) -> Figure:
    """Return the effects of `when_fts_pays`, by the title of a study: log-loss to the left, ECE to the right.

    Fits are those chosen by the score itself; a filled point has a verdict.
    """
    groups = {
        title: _forest_rows(rows[rows["metric"] == rows["criterion"]]) for title, rows in effects.items()
    }
    return draw_forest(groups, {metric: f"{METRICS[metric].name}, chosen by it" for metric in SHOWN_METRICS})


def training_figure(overviews: Mapping[str, pd.DataFrame]) -> Figure:
    """Return the ECE as trained and after TS, one panel per table, by the training losses common to all.

    A thick line is a standard deviation over seeds to either side.
    """
    losses = sorted(set.intersection(*(set(rows["loss"]) for rows in overviews.values())), key=loss_order)
    height = 0.24 * len(losses) + 0.7
    drawn, axes = panels(len(overviews), width=3.3, height=height, columns=2, sharex=True, sharey=True)
    places, factor = range(len(losses)), METRICS["ece"].factor
    for axis, (title, rows) in zip(axes, overviews.items(), strict=True):
        shown = rows.set_index("loss").loc[losses]
        scores = {method: factor * shown[f"ece_{method}_mean"].astype(float) for method in ("ts", "none")}
        axis.hlines(places, scores["ts"], scores["none"], color=GREY, linewidth=0.8, zorder=1)
        for method, values in scores.items():
            spread = factor * shown[f"ece_{method}_std"].astype(float)
            style = method_style(method)
            axis.hlines(places, values - spread, values + spread, color=style.color, linewidth=2.5)
            axis.plot(values, places, **style.options(linestyle=""))
        axis.set_title(title)
        axis.grid(visible=False, axis="y")
        axis.set_xlabel(f"test {METRICS['ece'].inline}")
        plain_log(axis, "x")
    axes[0].set_yticks(places, [loss_label(loss) for loss in losses])
    axes[0].set_ylim(len(losses) - 0.4, -0.6)
    legend_below(drawn, method_handles(["none", "ts"]))
    return drawn


def changes_figure(changes: Mapping[str, pd.DataFrame]) -> Figure:
    """Return what focal losses change in the ECE, by the temperature of cross-entropy: one panel per loss.

    `changes` has the title of a study and its `Study.focal_changes`.
    """
    losses = list(next(iter(changes.values()))["loss"].unique())
    drawn, axes = panels(len(losses), width=3.1, height=2.9, sharex=True, sharey=True)
    for axis, loss in zip(axes, losses, strict=True):
        axis.axhline(0, color=BLACK, linewidth=0.8)
        styled = list(zip(changes.items(), cycle(STYLES_OF_STUDIES), strict=False))
        for (title, rows), style in reversed(styled):  # the first on top
            shown = rows[rows["loss"] == loss]
            points = METRICS["ece"].factor * shown["change"].astype(float)
            axis.plot(shown["temperature"], points, label=title, **style.options(linestyle=""))
        axis.set_title(loss_label(loss))
        axis.set_xlabel("T of cross-entropy")
        plain_log(axis, "x")
    axes[0].set_ylabel("change of test ECE (points)")
    legend_below(drawn, {})
    return drawn


def _forest_rows(effects: pd.DataFrame) -> list[ForestRow]:
    found = {
        (row.family, row.metric): Difference(
            row.interval_low, row.difference_mean, row.interval_high, row.verdict
        )
        for row in effects.itertuples()
    }
    return [
        ForestRow(
            family, STYLE_OF_FAMILIES, {metric: found.get((family, metric)) for metric in SHOWN_METRICS}
        )
        for family in effects["family"].unique()
    ]
