"""FTS minus TS by training loss and network, with intervals over test samples."""

import itertools
import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.figures.scores import by_dataset_model
from focalcal.reporting.figures.style import BLACK, plain_number, setting_title
from focalcal.reporting.products import figure
from focalcal.reporting.records.measurements import LEADING, SECOND
from focalcal.reporting.statistics.effects import HEADLINE
from focalcal.reporting.text import MINUS
from focalcal.training.appearance import loss_order, loss_styles

SHOWN_METRICS = (LEADING, SECOND)
ROW_INCHES = 0.19
FLATTENS = 8
"""A difference so many times the typical one leaves no room for the others."""


@figure(
    of="networks",
    order=30,
    heading="Does focal temperature scaling beat temperature scaling? By loss and network",
    caption="FTS minus TS on test data; to the left of 0, FTS is better. Points are means over n seeds. "
    "Bars are {level} intervals over test samples and seeds, corrected for the number of networks. A filled "
    "point has an interval without 0.",
)
def forest(frame: pd.DataFrame) -> Figure | None:
    """Return the difference by dataset, model and loss: log-loss to the left, ECE to the right."""
    frame = frame[frame["method"] == HEADLINE[0]]
    shown = {metric: _by_own_criterion(frame[frame["metric"] == metric], metric) for metric in SHOWN_METRICS}
    shown = {metric: rows for metric, rows in shown.items() if len(rows)}
    styles = loss_styles(frame["loss"])
    rows = pd.concat(shown.values()).rename(columns={"estimate": "value"})
    rows = rows.assign(label=rows["loss_name"], style=rows["loss"].map(styles))
    groups = {
        setting_title(name, here["runs"]): here.sort_values("loss", key=lambda ids: ids.map(loss_order))
        for name, here in by_dataset_model(rows).items()
    }
    criteria = {metric: METRICS[rows["criterion"].iloc[0]].name for metric, rows in shown.items()}
    return draw_forest(groups, {m: f"{METRICS[m].name}, fitted by {name}" for m, name in criteria.items()})


def draw_forest(groups: Mapping[str, pd.DataFrame], titles: Mapping[str, str]) -> Figure:
    """Return differences below the headings of their groups, one panel per metric of `titles`.

    Rows have a label, a style, a metric, and the value of the difference with the bounds low and high.
    """
    count = sum(1 + rows["label"].nunique() for rows in groups.values())
    drawn = Figure(figsize=(2.9 * len(titles) + 1.2, ROW_INCHES * count + 0.9))
    axes = drawn.subplots(1, len(titles), squeeze=False, sharey=True)[0]
    look = {"va": "center", "fontweight": "bold", "fontsize": 8}
    look["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    panels = dict(zip(titles, axes, strict=True))
    for metric, axis in panels.items():
        _empty_panel(axis, metric, titles[metric])
    labels, places = {}, itertools.count()
    for heading, rows in groups.items():
        axes[0].text(0.015, next(places), heading, transform=axes[0].get_yaxis_transform(), **look)
        for label, here in rows.groupby("label", sort=False):
            place = next(places)
            labels[place] = label
            for row in here.itertuples():
                _draw_difference(panels[row.metric], place, row)
    for metric, axis in panels.items():
        _compress(axis, pd.concat([rows[rows["metric"] == metric] for rows in groups.values()]), metric)
    axes[0].set_yticks(list(labels), labels.values())
    axes[0].set_ylim(count - 0.4, -0.9)
    return drawn


def _by_own_criterion(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return the rows of fits by the metric itself where there are any, else all."""
    own = rows[rows["criterion"] == metric]
    return own if len(own) else rows


def _empty_panel(axis: Axes, metric: str, title: str) -> None:
    first, second = (METHODS[method].label for method in HEADLINE)
    unit = METRICS[metric].difference_unit.strip() or "nats"
    axis.axvline(0, color=BLACK, linewidth=0.8)
    axis.set_title(title)
    axis.set_xlabel(f"{first} {MINUS} {second} ({unit}), below 0: {first} better")
    axis.locator_params(axis="x", nbins=5)
    axis.grid(visible=False, axis="y")


def _compress(axis: Axes, rows: pd.DataFrame, metric: str) -> None:
    """Compress the scale of large differences where one of them would flatten all others."""
    sizes = METRICS[metric].factor * rows["value"].abs()
    typical = sizes[sizes > 0].median()
    if sizes.max() > FLATTENS * typical:
        axis.set_xscale("symlog", linthresh=2 * typical, linscale=1)
        power = 10.0 ** math.floor(math.log10(2 * typical))
        linear = max(step * power for step in (1, 2, 5) if step * power <= 2 * typical * (1 + 1e-9))
        ticks = [0.0, *(sign * linear * 10**n for n in range(4) for sign in (-1, 1))]
        low, high = axis.get_xlim()
        axis.set_xticks([tick for tick in ticks if low <= tick <= high])
        axis.xaxis.set_major_formatter(plain_number)
        axis.set_xlabel(f"{axis.get_xlabel()}, compressed")


def _draw_difference(axis: Axes, place: int, row: Any) -> None:
    """Draw a difference with its interval, open if that has 0 inside."""
    low, value, high = (METRICS[row.metric].factor * bound for bound in (row.low, row.value, row.high))
    axis.plot([low, high], [place, place], color=row.style.color, linewidth=1.3)
    look = {} if low > 0 or high < 0 else {"markerfacecolor": "white"}
    axis.plot(value, place, **row.style.options(linestyle="", **look))
