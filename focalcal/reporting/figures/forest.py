"""FTS minus TS by training loss and network, with intervals over test samples."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.figures.scores import by_dataset_model
from focalcal.reporting.figures.style import BLACK, setting_title, styles_of_losses
from focalcal.reporting.products import figure
from focalcal.reporting.records.measurements import LEADING, SECOND, SETTING
from focalcal.reporting.statistics.effects import HEADLINE
from focalcal.reporting.text import MINUS
from focalcal.training.appearance import Style, loss_label, loss_order

SHOWN_METRICS = (LEADING, SECOND)
ROW_INCHES = 0.19


@dataclass(frozen=True)
class Difference:
    """A difference of two scores with its interval."""

    low: float
    value: float
    high: float

    @property
    def shown(self) -> bool:
        """Whether the two differ: the interval excludes 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class ForestRow:
    """One line of a forest plot: its name, how it is drawn, and its difference by metric, if any."""

    label: str
    style: Style
    differences: Mapping[str, Difference | None]


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
    networks = pd.concat(shown.values()).drop_duplicates(SETTING).rename(columns={"runs": "n"})
    found = {
        (metric, row.dataset, row.model, row.loss): Difference(row.low, row.estimate, row.high)
        for metric, rows in shown.items()
        for row in rows.itertuples()
    }
    styles = styles_of_losses(networks["loss"])
    groups = {
        setting_title(dataset_model, here["n"]): [
            ForestRow(
                loss_label(loss),
                styles[loss],
                {metric: found.get((metric, *dataset_model.split("/"), loss)) for metric in shown},
            )
            for loss in sorted(here["loss"], key=loss_order)
        ]
        for dataset_model, here in by_dataset_model(networks).items()
    }
    criteria = {metric: METRICS[rows["criterion"].iloc[0]].name for metric, rows in shown.items()}
    return draw_forest(groups, {m: f"{METRICS[m].name}, fitted by {name}" for m, name in criteria.items()})


def draw_forest(groups: Mapping[str, Sequence[ForestRow]], titles: Mapping[str, str]) -> Figure:
    """Return rows of differences below the headings of their groups, one panel per metric of `titles`."""
    count = sum(1 + len(rows) for rows in groups.values())
    drawn = Figure(figsize=(2.9 * len(titles) + 1.2, ROW_INCHES * count + 0.9))
    axes = drawn.subplots(1, len(titles), squeeze=False, sharey=True)[0]
    look = {"va": "center", "fontweight": "bold", "fontsize": 8}
    look["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    for axis, (metric, title) in zip(axes, titles.items(), strict=True):
        _empty_panel(axis, metric, title)
    labels, places = {}, itertools.count()
    for heading, rows in groups.items():
        axes[0].text(0.015, next(places), heading, transform=axes[0].get_yaxis_transform(), **look)
        for row in rows:
            place = next(places)
            labels[place] = row.label
            for axis, metric in zip(axes, titles, strict=True):
                if difference := row.differences[metric]:
                    _draw_difference(axis, place, row.style, difference, METRICS[metric].factor)
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


def _draw_difference(axis: Axes, place: int, style: Style, difference: Difference, factor: float) -> None:
    low, value, high = (factor * bound for bound in (difference.low, difference.value, difference.high))
    axis.plot([low, high], [place, place], color=style.color, linewidth=1.3)
    look = {} if difference.shown else {"markerfacecolor": "white"}
    axis.plot(value, place, **style.options(linestyle="", **look))
