"""FTS minus TS by training loss and network, with intervals over test samples."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.figures.scores import by_dataset_model
from focalcal.reporting.figures.style import BLACK, setting_title, styles_of_losses
from focalcal.reporting.products import figure
from focalcal.reporting.records.measurements import SETTING
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.comparisons import HEADLINE
from focalcal.reporting.statistics.effects import sample_comparisons
from focalcal.reporting.text import MINUS
from focalcal.training.appearance import loss_label, loss_order

SHOWN_METRICS = ("nll", "ece")
"""The proper score first."""
ROW_INCHES = 0.19


@figure(
    section="answer",
    order=30,
    heading="Does focal temperature scaling beat temperature scaling? By loss and network",
    caption="FTS minus TS on test data; to the left of 0, FTS is better. Points are means over n seeds. Bars "
    "are 95 % bootstrap intervals over the test samples, the same samples for both calibrators; with several "
    "seeds, the mean of their bounds. A filled point has an interval without 0. Intervals are not corrected "
    "for multiple comparisons.",
    inputs=("runs", "diagnostics"),
)
def forest(sources: Sources) -> Figure | None:
    """Return the difference by dataset, model and loss: log-loss to the left, ECE to the right."""
    differences = sample_differences(sources.diagnostics)
    shown = {
        metric: preferred_criterion(differences[differences["metric"] == metric], metric, sources.criterion)
        for metric in SHOWN_METRICS
    }
    shown = {metric: rows for metric, rows in shown.items() if len(rows)}
    if not shown:
        return None
    settings = pd.concat(shown.values()).drop_duplicates(SETTING)
    groups = by_dataset_model(settings)
    places, labels, headings = {}, {}, []
    for dataset_model, here in groups.items():
        headings.append((len(places) + len(headings), setting_title(dataset_model, here["n"])))
        for loss in sorted(here["loss"], key=loss_order):
            place = len(places) + len(headings)
            places[(*dataset_model.split("/"), loss)] = place
            labels[place] = loss_label(loss)
    count = len(places) + len(headings)
    drawn = Figure(figsize=(2.9 * len(shown) + 1.2, ROW_INCHES * count + 0.9))
    axes = drawn.subplots(1, len(shown), squeeze=False, sharey=True)[0]
    for axis, (metric, rows) in zip(axes, shown.items(), strict=True):
        _differences_panel(axis, rows, places, metric)
    axes[0].set_yticks(list(labels), labels.values())
    axes[0].set_ylim(count - 0.4, -0.9)
    look = {"va": "center", "fontweight": "bold", "fontsize": 8}
    look["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    for place, text in headings:
        axes[0].text(0.015, place, text, transform=axes[0].get_yaxis_transform(), **look)
    return drawn


def sample_differences(diagnostics: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return FTS minus TS over seeds: dataset, model, loss, metric, criterion, difference, low, high, n.

    Differences and bounds are means over n seeds; the seeds share their test samples, so that the bounds of
    a mean are about as far apart as those of one seed.
    """
    rows = sample_comparisons(diagnostics)
    rows = rows[(rows["method"] == HEADLINE[0]) & (rows["against"] == HEADLINE[1])]
    names = ["difference", "low", "high"]
    groups = rows.groupby([*SETTING, "metric", "criterion"])[names]
    return groups.mean().assign(n=groups.size()).reset_index()


def preferred_criterion(rows: pd.DataFrame, metric: str, criterion: str) -> pd.DataFrame:
    """Return the rows of fits selected by the metric itself where there are any, else by `criterion`."""
    own = rows[rows["criterion"] == metric]
    return own if len(own) else rows[rows["criterion"] == criterion]


def _differences_panel(
    axis: Axes, rows: pd.DataFrame, places: Mapping[tuple[str, ...], int], metric: str
) -> None:
    """Draw one metric's differences with their intervals at the places of their settings."""
    declared, styles = METRICS[metric], styles_of_losses(rows["loss"])
    first, second = (METHODS[method].label for method in HEADLINE)
    axis.axvline(0, color=BLACK, linewidth=0.8)
    for row in rows.itertuples():
        place, style = places[row.dataset, row.model, row.loss], styles[row.loss]
        low, value, high = (bound * declared.factor for bound in (row.low, row.difference, row.high))
        axis.plot([low, high], [place, place], color=style.color, linewidth=1.3)
        look = {} if row.low > 0 or row.high < 0 else {"markerfacecolor": "white"}
        axis.plot(value, place, **style.options(linestyle="", **look))
    unit = declared.difference_unit.strip() or "nats"
    criterion = METRICS[rows["criterion"].iloc[0]].name
    axis.set_title(f"{declared.name}, selected by {criterion}")
    axis.set_xlabel(f"{first} {MINUS} {second} ({unit}), below 0: {first} better")
    axis.locator_params(axis="x", nbins=5)
    axis.grid(visible=False, axis="y")
