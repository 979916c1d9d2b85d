"""The search for temperature and gamma: the best T at each gamma."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from focalcal.calibration.catalogue import METRICS
from focalcal.reporting.figures.style import (
    legend_below,
    message_figure,
    panels,
    setting_title,
)
from focalcal.reporting.products import figure
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.text import MINUS
from focalcal.training.appearance import GAMMA, Style, loss_label, loss_order, loss_styles

DENSE = 1
"""Most gammas of a grid are at most this. One far above would decide the lines alone: it is left out."""


@dataclass(frozen=True)
class Search:
    """The searches of one loss's runs: gammas (g,), temperatures (t,), surfaces (runs, g, t)."""

    gammas: NDArray[np.float64]
    temperatures: NDArray[np.float64]
    surfaces: NDArray[np.float64]

    def best_temperatures(self) -> NDArray[np.float64]:
        """Return for each run and gamma the temperature with the lowest score, float (runs, gammas)."""
        return self.temperatures[self.surfaces.argmin(axis=2)]


def searches_by_loss(sources: Sources) -> dict[str, Search]:
    """Return the searches by the report's criterion, gammas ascending, losses in the suite's order."""
    found: dict[str, list[dict[str, NDArray]]] = {}
    for run, arrays in sources.surfaces():
        if sources.criterion in arrays:
            found.setdefault(run["loss"], []).append(arrays)
    searches = {}
    for loss in sorted(found, key=loss_order):
        first = found[loss][0]
        order = np.argsort(first["gammas"])
        surfaces = np.array([arrays[sources.criterion][order] for arrays in found[loss]])
        searches[loss] = Search(first["gammas"][order], first["temperatures"], surfaces)
    return searches


def fit_line(gammas: NDArray, temperatures: NDArray) -> tuple[float, float, float]:
    """Return intercept and slope of the least-squares line through points (n,), and the variance explained.

    The last is 1 where the temperatures are equal.
    """
    slope, intercept = np.polyfit(gammas, temperatures, 1)
    residual, spread = np.var(temperatures - (intercept + slope * gammas)), np.var(temperatures)
    return float(intercept), float(slope), float(1 - residual / spread) if spread > 0 else 1.0


@figure(
    section="fits",
    order=40,
    heading="Best temperature for each gamma (K24 Fig. 8)",
    caption="The T that minimises the validation score at each gamma up to 1 of the focal map, with "
    "least-squares lines. Points are means over n seeds, bars one standard deviation. Open points are at "
    "the boundary of the searched temperatures for some seed; the lines leave them out.",
    inputs=("runs", "surfaces"),
    scope="dataset and model",
    settings=("criterion",),
)
def relation(sources: Sources) -> Figure:
    """Return the best T at each gamma of the focal map by loss."""
    searches = searches_by_loss(sources)
    if not searches:
        return _no_search(sources)
    drawn, (axis,) = panels(1, width=6.2, height=3.6)
    title = setting_title(sources.dataset_model, (len(s.surfaces) for s in searches.values()))
    drawn.suptitle(f"{title}, by validation {METRICS[sources.criterion].name}")
    for loss, style in loss_styles(searches).items():
        _best_temperatures(axis, searches[loss], style, loss_label(loss))
    axis.set(xlabel=f"{GAMMA} of the focal map", ylabel="best temperature T", ylim=(0, None))
    legend_below(drawn, {}, columns=2)
    return drawn


def _best_temperatures(axis: Axes, search: Search, style: Style, name: str) -> None:
    """Draw the best T at each gamma of one loss with its line; open points are at the boundary."""
    near = search.gammas <= DENSE
    best, gammas = search.best_temperatures()[:, near], search.gammas[near]
    mean = best.mean(axis=0)
    inside = ~np.isin(best, search.temperatures[[0, -1]]).any(axis=0)
    label = f"{name}: no line, T at the boundary"
    if inside.sum() >= 2:
        intercept, slope, explained = fit_line(gammas[inside], mean[inside])
        axis.plot(gammas, intercept + slope * gammas, **style.options(marker="", linewidth=1))
        sign = "+" if slope >= 0 else MINUS
        label = f"{name}: T = {intercept:.2f} {sign} {abs(slope):.2f} {GAMMA}, R² = {explained:.2f}"
    look = style.options(linestyle="", markerfacecolor="white")
    axis.plot(gammas[~inside], mean[~inside], **look)
    spread = best.std(axis=0, ddof=1)[inside] if len(best) > 1 else None
    look = style.options(linestyle="", capsize=2, label=label)
    axis.errorbar(gammas[inside], mean[inside], yerr=spread, **look)


def _no_search(sources: Sources) -> Figure:
    return message_figure(f"No available run has a search by {METRICS[sources.criterion].name}.")
