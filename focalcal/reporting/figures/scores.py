"""Scores of losses and calibrators: calibration error, calibration against accuracy, selection optimism."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.figures.style import (
    BLACK,
    COLUMNS,
    GREY,
    legend_below,
    method_handles,
    method_style,
    panels,
    plain_log,
    setting_title,
    styles_of_losses,
)
from focalcal.reporting.products import figure
from focalcal.reporting.records.measurements import (
    RUN,
    SCORE,
    SETTING,
    optimism_by_run,
    rows_of_fits,
    shown_fits,
)
from focalcal.reporting.records.published import Published
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.text import MINUS, natural_order
from focalcal.training.appearance import Style, loss_label, loss_order

LOSS_INCHES = (0.36, 0.7)
"""Least and greatest height of a loss with all its calibrators."""
WIDTH = 0.8
"""Part of a row's height that its points take, as seaborn's strips do."""
PAPERS = {"K24": "*", "M20": "o"}
"""Papers whose printed values are drawn, with their markers."""
AFTER = "fts"
"""The calibrator whose effect is set against accuracy."""
OPTIMISM_METHODS = ("ts", "fts", "fts-line")


@figure(
    section="losses",
    order=20,
    heading="Calibration error before and after calibration",
    caption="Test score by training loss. Points are means over n seeds, bars one standard deviation. Open "
    "markers are values that a paper prints for the same network, loss and calibrator.",
    inputs=("metrics",),
    settings=("metric", "criterion"),
)
def calibration_error(sources: Sources) -> Figure | None:
    """Return the score of every loss and calibrator, one panel per dataset and model."""
    rows = rows_of_fits(sources.metrics, shown_fits(sources.metrics, sources.criterion), sources.metric)
    if rows.empty:
        return None
    rows = rows.assign(value=rows["value"] * METRICS[sources.metric].factor)
    better = "higher" if METRICS[sources.metric].higher_is_better else "lower"
    label = f"test {METRICS[sources.metric].inline}, {better} is better"
    drawn, axes = panels_by_loss(rows, label, strips=False, errorbar=_deviation)
    for axis, here in axes:
        _published_points(axis, here, sources.published)
        plain_log(axis, "x")
    legend_below(drawn, method_handles(methods_in(rows)))
    return drawn


@figure(
    section="losses",
    order=40,
    heading="Calibration against accuracy",
    caption="One point per training loss: its test error and its calibration error, as trained (filled) and "
    "after focal temperature scaling (open). Points are means over n seeds, bars one standard deviation. All "
    "panels span equally many points of test error.",
    inputs=("metrics",),
    settings=("metric", "criterion"),
)
def calibration_against_accuracy(sources: Sources) -> Figure | None:
    """Return calibration against test error by loss, as trained and after FTS."""
    metric = METRICS[sources.metric]
    fits = [fit for fit in shown_fits(sources.metrics, sources.criterion) if fit[0] in {"none", AFTER}]
    scores = rows_of_fits(sources.metrics, fits, metric.id)
    errors = rows_of_fits(sources.metrics, [("none", "")], "error")
    if scores.empty or errors.empty:
        return None
    both = scores.merge(errors[[*RUN, "value"]], on=RUN, suffixes=("", "_error"))
    both["value"] *= metric.factor
    both["value_error"] *= METRICS["error"].factor
    means = both.groupby([*SETTING, "method"], as_index=False).agg(
        value=("value", "mean"),
        error=("value_error", "mean"),
        spread=("value_error", "std"),
        deviation=("value", "std"),
        seeds=("seed", "size"),
    )
    styles = styles_of_losses(means["loss"])
    groups = by_dataset_model(means)
    # One span for all panels, so that errors which hardly differ look like it.
    reach = [here["error"].max() - here["error"].min() + 2 * here["spread"].max() for here in groups.values()]
    span = max(1.0, 1.2 * np.nanmax([*reach, 0.0]))
    drawn, axes = panels(len(groups), width=3.7, height=3.0)
    for axis, (dataset_model, here) in zip(axes, groups.items(), strict=True):
        _accuracy_panel(axis, here, styles)
        axis.set_title(setting_title(dataset_model, here["seeds"]))
        axis.set(xlabel=f"test {METRICS['error'].inline}", ylabel=f"test {metric.inline}")
        axis.margins(0.12)
        middle = (here["error"].min() + here["error"].max()) / 2
        axis.set_xlim(middle - span / 2, middle + span / 2)
        axis.locator_params(axis="x", nbins=5)
        plain_log(axis, "y")
    markers = {loss: Line2D([], [], **style.options(linestyle="")) for loss, style in styles.items()}
    legend_below(drawn, {loss_label(loss): marker for loss, marker in markers.items()}, columns=5)
    grey = {"color": GREY, "marker": "o", "linestyle": ""}
    states = [Line2D([], [], **grey), Line2D([], [], **grey, markerfacecolor="white")]
    names = [METHODS["none"].label, f"after {METHODS[AFTER].label}"]
    drawn.legend(states, names, loc="outside upper right", ncols=2)
    return drawn


@figure(
    section="scores",
    order=70,
    heading="Selection optimism",
    caption="Test score minus validation score of each fitted calibrator, in the criterion it was fitted "
    "by. Points are means over the runs of a dataset and model, bars one standard deviation. To the right "
    "of 0, the fits did worse on test data than their validation scores promised. Scores also differ "
    "because the two splits have different samples.",
    inputs=("metrics",),
)
def selection_optimism(sources: Sources) -> Figure | None:
    """Return the validation-test gap of each fitted calibrator, one panel per criterion."""
    gaps = optimism_by_run(sources.metrics)
    gaps = gaps[gaps["method"].isin(OPTIMISM_METHODS)]
    criteria = [name for name in METRICS if name in set(gaps["criterion"])]
    if not criteria:
        return None
    gaps = gaps.assign(pair=gaps["dataset"] + " · " + gaps["model"])
    pairs = [name.replace("/", " · ") for name in by_dataset_model(gaps)]
    methods = methods_in(gaps)
    drawn, axes = panels(len(criteria), width=2.9, height=0.7 + 0.25 * len(methods) * len(pairs), sharey=True)
    for axis, criterion in zip(axes, criteria, strict=True):
        metric = METRICS[criterion]
        here = gaps[gaps["criterion"] == criterion]
        here = here.assign(value=here["optimism"] * metric.factor)
        axis.axvline(0, color=BLACK, linewidth=0.8)
        points_by_method(axis, here, y="pair", order=pairs, strips=False, errorbar=_run_deviation)
        runs = here.groupby("method").size().max()
        unit = f" ({metric.difference_unit.strip()})" if metric.difference_unit else ""
        axis.set_title(f"fitted by {metric.name}, {runs} runs")
        axis.set(xlabel=f"{metric.name}, test {MINUS} validation{unit}", ylabel="")
        axis.locator_params(axis="x", nbins=5)
    legend_below(drawn, method_handles(methods))
    return drawn


def by_dataset_model(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows of each `dataset/model`, resnet8 before resnet20."""
    groups = dict(iter(rows.groupby(rows["dataset"] + "/" + rows["model"])))
    order = sorted(groups, key=lambda name: [natural_order(part) for part in name.split("/")])
    return {name: groups[name] for name in order}


def methods_in(rows: pd.DataFrame) -> list[str]:
    """Return the methods of these rows in the order of the catalogue."""
    found = set(rows["method"])
    return [method for method in METHODS if method in found]


def panels_by_loss(
    rows: pd.DataFrame, label: str, **options: Any
) -> tuple[Figure, list[tuple[Axes, pd.DataFrame]]]:
    """Return a figure of column `value`, and the axis and rows of each dataset and model.

    Each panel has one line per loss, as tall as those beside it; the options are those of `points_by_method`.
    """
    groups = by_dataset_model(rows)
    counts = [here["loss"].nunique() for here in groups.values()]
    most = [max(counts[i - i % COLUMNS :][:COLUMNS]) for i in range(len(counts))]
    inches = min(max(LOSS_INCHES[0], 0.08 * len(methods_in(rows))), LOSS_INCHES[1])
    heights = [0.9 + inches * count for count in most]
    drawn, axes = panels(len(groups), width=3.7 if len(groups) > 1 else 6.4, height=heights)
    for axis, count, (dataset_model, here) in zip(axes, most, groups.items(), strict=True):
        losses = sorted(set(here["loss"]), key=loss_order)
        points_by_method(axis, here, y="loss", order=losses, capsize=0.1, **options)
        axis.set_yticks(range(len(losses)), [loss_label(loss) for loss in losses])
        axis.set_ylim(count - 0.5, -0.5)
        seeds = here.groupby(["loss", "method"]).size()
        axis.set(title=setting_title(dataset_model, seeds), xlabel=label, ylabel="")
    return drawn, list(zip(axes, groups.values(), strict=True))


def points_by_method(
    axis: Axes, rows: pd.DataFrame, *, x: str = "value", y: str = "value", strips: bool = True, **options: Any
) -> None:
    """Draw column `value` against a column of names: within each name, one line of points per method.

    Large points are means, or what the options of seaborn's `pointplot` say; small ones, the `strips`, rows.
    """
    methods = methods_in(rows)
    styles = [method_style(method) for method in methods]
    common = {
        "data": rows,
        "x": x,
        "y": y,
        "hue": "method",
        "order": options.pop("order", None),
        "hue_order": methods,
        "palette": [style.color for style in styles],
        "legend": False,
        "ax": axis,
    }
    if strips:
        sns.stripplot(**common, dodge=True, jitter=False, size=3, alpha=0.5, linewidth=0)
    sns.pointplot(
        **common,
        markers=[style.marker for style in styles],
        linestyle="none",
        markersize=5,
        markeredgewidth=0.6 if strips else 0,
        markeredgecolor="white",
        dodge=WIDTH * (1 - 1 / len(methods)) or False,
        err_kws={"linewidth": 1.4},
        **options,
    )
    if x == "value":
        # Without strips the axis would end at the outermost points and cut their markers.
        axis.set_ylim(len(axis.get_yticks()) - 0.5, -0.5)
    axis.grid(visible=False, axis="y" if x == "value" else "x")


def _deviation(values: pd.Series) -> tuple[float, float]:
    """Return the ends of a bar of one standard deviation; on a logarithmic axis it must not reach 0."""
    mean, deviation = values.mean(), values.std()
    return mean - min(deviation, 0.95 * mean), mean + deviation


def _run_deviation(values: pd.Series) -> tuple[float, float]:
    """Return the ends of a bar of one standard deviation."""
    return values.mean() - values.std(), values.mean() + values.std()


def _published_points(axis: Axes, rows: pd.DataFrame, published: Published) -> None:
    """Draw the printed values of the cells that are drawn."""
    methods, losses = methods_in(rows), sorted(set(rows["loss"]), key=loss_order)
    for cell in rows[[*SETTING, *SCORE]].drop_duplicates().itertuples(index=False, name=None):
        _, _, loss, method, _, metric = cell
        y = losses.index(loss) + WIDTH * ((methods.index(method) + 0.5) / len(methods) - 0.5)
        for paper, marker in PAPERS.items():
            if (paper, *cell) in published:
                value = float(published[paper, *cell]["value"]) * METRICS[metric].factor
                look = {"markersize": 9, "markerfacecolor": "none", "markeredgecolor": BLACK}
                axis.plot(value, y, marker, **look, label=f"{paper}, printed")


def _accuracy_panel(axis: Axes, means: pd.DataFrame, styles: Mapping[str, Style]) -> None:
    """Draw one dataset and model: filled markers as trained, larger open ones after FTS, joined by lines."""
    for loss, here in means.set_index("method").groupby("loss"):
        style, raw = styles[loss], here.loc["none"]
        spread, deviation = raw["spread"], min(raw["deviation"], 0.9 * raw["value"])
        axis.errorbar(raw["error"], raw["value"], deviation, spread, color=style.color, elinewidth=1)
        axis.plot(here["error"], here["value"], color=style.color, linewidth=0.8, alpha=0.6)
        # Larger and below: where the score stays the same, the filled marker lies within the open one.
        after = here[here.index == AFTER]
        look = {"marker": style.marker, "edgecolor": style.color}
        axis.scatter(after["error"], after["value"], 70, "white", **look, linewidth=1.2, zorder=2)
        axis.scatter(raw["error"], raw["value"], 30, style.color, **look, linewidth=0, zorder=3)
