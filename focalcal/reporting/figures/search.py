"""Figures of the search for temperature and gamma: ECE against T, the search surface, best T by gamma."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.figures.style import (
    BLACK,
    GREY,
    message_figure,
    method_handle,
    method_legend,
    method_style,
    panels,
    plain_log,
    setting_title,
    styles_of_losses,
)
from focalcal.reporting.products import figure
from focalcal.reporting.records.measurements import chosen_fits, rows_of_fits
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.text import MINUS
from focalcal.training.appearance import GAMMA, loss_label, loss_order

LEAST_SHOWN_TEMPERATURE = 0.1
"""Below it predictions are nearly one-hot and every curve is flat."""
VALLEY = 1.5
"""A surface is shown from its smallest best temperature divided by this to its largest times this."""
DENSE = 1
"""Grids have most of their gammas up to here."""
SEARCHED = ("ts", "fts")
"""Methods whose choices lie on the surface."""


@dataclass(frozen=True)
class Search:
    """The searches of one loss's runs: gammas (g,), temperatures (t,), surfaces (runs, g, t)."""

    gammas: NDArray[np.float64]
    temperatures: NDArray[np.float64]
    surfaces: NDArray[np.float64]

    def best_temperatures(self) -> NDArray[np.float64]:
        """Return for each run and gamma the temperature with the lowest score, float (runs, gammas)."""
        return self.temperatures[self.surfaces.argmin(axis=2)]


@dataclass(frozen=True)
class Line:
    """A least-squares line T = intercept + slope gamma, and the share of variance it explains."""

    intercept: float
    slope: float
    r_squared: float


def searches_by_loss(sources: Sources) -> dict[str, Search]:
    """Return the searches by the report's criterion, gammas ascending, losses in the suite's order."""
    found: dict[str, list[Mapping[str, NDArray]]] = {}
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


def fit_line(gammas: NDArray, temperatures: NDArray) -> Line:
    """Return the least-squares line through points (n,); r_squared is 1 where the temperatures are equal."""
    slope, intercept = np.polyfit(gammas, temperatures, 1)
    residual = temperatures - (intercept + slope * gammas)
    spread = float(((temperatures - temperatures.mean()) ** 2).sum())
    explained = 1.0 if spread == 0 else 1 - float((residual**2).sum()) / spread
    return Line(float(intercept), float(slope), explained)


@figure(
    page="calibration",
    order=41,
    heading="Calibration error against temperature",
    caption="Test ECE of the logits divided by T, mean over n seeds. A marker is temperature scaling: the T "
    "selected on validation data and the test ECE it gives, both means over seeds.",
    inputs=("runs", "metrics", "diagnostics"),
    scope="dataset and model",
)
def temperature(sources: Sources) -> Figure | None:
    """Return test ECE against T by loss."""
    curves: dict[str, list[list[float]]] = {}
    for record in sources.diagnostics:
        grid = np.array(record["curve"]["temperatures"])
        curves.setdefault(record["run"]["loss"], []).append(record["curve"]["ece"])
    if not curves:
        return None
    scaled = _choices(sources, ("ts",), "ece").groupby("loss")[["temperature", "value"]].mean()
    styles = styles_of_losses(curves)
    drawn, (axis,) = panels(1, width=6.4, height=3.6)
    least_shown = max(grid[0], LEAST_SHOWN_TEMPERATURE)
    for loss, style in styles.items():
        mean = np.mean(curves[loss], axis=0) * 100
        axis.plot(grid, mean, color=style.color, linestyle=style.line, label=loss_label(loss))
        if loss in scaled.index:
            selected, score = scaled.loc[loss]
            least_shown = min(least_shown, selected)
            look = {"color": style.color, "markersize": 8, "markeredgecolor": "white"}
            axis.plot(selected, score * 100, style.marker, **look)
    axis.axvline(1, color=BLACK, linewidth=0.8, linestyle=":")
    place = {"transform": axis.get_xaxis_transform(), "va": "top", "fontsize": 8, "color": GREY}
    axis.text(1.02, 0.99, METHODS["none"].label, **place)
    plain_log(axis, "x")
    plain_log(axis, "y")
    axis.set(
        title=setting_title(sources.dataset_model, map(len, curves.values())),
        xlabel="temperature T",
        ylabel=f"test {METRICS['ece'].inline}",
        xlim=(least_shown / 1.1, grid[-1] * 1.1),
    )
    axis.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return drawn


@figure(
    page="calibration",
    order=42,
    heading="Search surface of focal temperature scaling",
    caption="Validation score over the grid of gamma and T around its valley, mean over n seeds. Rows are "
    "the searched gammas, not to scale. Markers are the choices of the single seeds; the dotted line joins "
    "the best T of each gamma.",
    inputs=("runs", "metrics", "surfaces"),
    scope="dataset and model",
)
def surface(sources: Sources) -> Figure:
    """Return the validation score over gamma and T, one panel per loss."""
    searches = searches_by_loss(sources)
    if not searches:
        return _no_search(sources)
    chosen = _choices(sources, SEARCHED, sources.criterion)
    metric = METRICS[sources.criterion]
    best = {loss: search.best_temperatures().mean(axis=0) for loss, search in searches.items()}
    shown = {
        loss: (search.temperatures >= best[loss].min() / VALLEY)
        & (search.temperatures <= best[loss].max() * VALLEY)
        for loss, search in searches.items()
    }
    # Scores of 0 have no logarithm.
    logs = {
        loss: np.log10(np.maximum(search.surfaces.mean(axis=0)[:, shown[loss]] * metric.factor, 1e-6))
        for loss, search in searches.items()
    }
    limits = min(values.min() for values in logs.values()), max(values.max() for values in logs.values())
    drawn, axes = panels(len(searches), width=3.2, height=2.7)
    seeds = (len(search.surfaces) for search in searches.values())
    drawn.suptitle(setting_title(sources.dataset_model, seeds))
    for axis, (loss, search) in zip(axes, searches.items(), strict=True):
        rows = np.arange(len(search.gammas))
        colours = {"cmap": "cividis_r", "vmin": limits[0], "vmax": limits[1]}
        temperatures = search.temperatures[shown[loss]]
        image = axis.pcolormesh(temperatures, rows, logs[loss], **colours, shading="nearest", rasterized=True)
        axis.plot(best[loss], rows, color="white", linewidth=1, linestyle=":")
        for method, points in chosen[chosen["loss"] == loss].groupby("method"):
            at = points[points["gamma"].isin(search.gammas)]
            style = method_style(method)
            look = {"color": style.color, "markersize": 6, "markeredgecolor": "white", "markeredgewidth": 0.8}
            axis.plot(at["temperature"], np.searchsorted(search.gammas, at["gamma"]), style.marker, **look)
        axis.set_yticks(rows, [f"{gamma:g}".replace("-", MINUS) for gamma in search.gammas])
        axis.set(title=loss_label(loss), xlabel="temperature T", ylabel=GAMMA)
        axis.grid(visible=False)
        plain_log(axis, "x")
    bar = drawn.colorbar(image, ax=axes, shrink=0.8, pad=0.01)
    ticks = [v for v in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if limits[0] <= np.log10(v) <= limits[1]]
    bar.set_ticks(np.log10(ticks), labels=[f"{value:g}" for value in ticks])
    bar.set_label(f"validation {metric.inline}")
    handles = {f"selected by {METHODS[method].label}": method_handle(method) for method in SEARCHED}
    handles[f"best T for each {GAMMA}"] = Line2D([], [], color=GREY, linestyle=":")
    method_legend(drawn, (), handles)
    return drawn


@figure(
    page="calibration",
    order=43,
    heading="Best temperature for each gamma (K24 Fig. 8)",
    caption="The T that minimises the validation score at each gamma of the focal map, with least-squares "
    "lines. Points are means over n seeds, bars one standard deviation. Open points are at the boundary of "
    "the searched temperatures for some seed; the lines leave them out.",
    inputs=("runs", "surfaces"),
    scope="dataset and model",
)
def relation(sources: Sources) -> Figure:
    """Return the best T at each gamma of the focal map by loss."""
    searches = searches_by_loss(sources)
    if not searches:
        return _no_search(sources)
    styles = styles_of_losses(searches)
    drawn, axes = panels(2, width=3.9, height=3.6)
    for loss, search in searches.items():
        style, best = styles[loss], search.best_temperatures()
        mean, gammas = best.mean(axis=0), search.gammas
        inside = ~np.isin(best, search.temperatures[[0, -1]]).any(axis=0)
        label = f"{loss_label(loss)}: no line, T at the boundary"
        look = {"color": style.color, "linestyle": style.line, "linewidth": 1}
        if inside.sum() >= 2:
            line = fit_line(gammas[inside], mean[inside])
            label = f"{loss_label(loss)}: {_equation(line)}"
            for axis in axes:
                axis.plot(gammas, line.intercept + line.slope * gammas, **look)
        spread = best.std(axis=0, ddof=1)[inside] if len(best) > 1 else None
        look = {"fmt": style.marker, "color": style.color, "capsize": 2, "label": label}
        for axis in axes:
            axis.plot(
                gammas[~inside], mean[~inside], style.marker, color=style.color, markerfacecolor="white"
            )
            axis.errorbar(gammas[inside], mean[inside], yerr=spread, **look)
    title = setting_title(sources.dataset_model, (len(s.surfaces) for s in searches.values()))
    drawn.suptitle(f"{title}, by validation {METRICS[sources.criterion].name}")
    for axis in axes:
        axis.set(xlabel=f"{GAMMA} of the focal map", ylim=(0, None))
    axes[0].set_ylabel("best temperature T")
    _enlarge_dense_part(axes[1], searches)
    handles = axes[0].get_legend_handles_labels()
    drawn.legend(*handles, loc="outside lower center", ncols=2)
    return drawn


def _enlarge_dense_part(axis: Axes, searches: Mapping[str, Search]) -> None:
    """Show only the gammas up to 1, of which grids have most, with the temperatures found there."""
    dense = {loss: search.gammas <= DENSE for loss, search in searches.items()}
    tops = [s.best_temperatures()[:, dense[loss]].max(initial=0) for loss, s in searches.items()]
    lowest = min(search.gammas[0] for search in searches.values())
    axis.set(title=f"{GAMMA} up to {DENSE}", xlim=(lowest - 0.1, DENSE + 0.1), ylim=(0, 1.1 * max(tops)))


def _choices(sources: Sources, methods: tuple[str, ...], metric: str) -> pd.DataFrame:
    """Return the test rows of these methods' chosen fits, for this dataset and model."""
    dataset, model = sources.dataset_model.split("/")
    metrics = sources.metrics
    here = metrics[(metrics["dataset"] == dataset) & (metrics["model"] == model)]
    fits = [fit for fit in chosen_fits(here, sources.criterion) if fit[0] in methods]
    return rows_of_fits(here, fits, metric)


def _no_search(sources: Sources) -> Figure:
    return message_figure(f"No available run has a search by {METRICS[sources.criterion].name}.")


def _equation(line: Line) -> str:
    sign = "+" if line.slope >= 0 else MINUS
    return f"T = {line.intercept:.2f} {sign} {abs(line.slope):.2f} {GAMMA}, R² = {line.r_squared:.2f}"
