"""Figures of the search for temperature and gamma: ECE against T, the search surface, best T by gamma."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from focalcal.reporting.figures.reliability import pool
from focalcal.reporting.figures.style import (
    BLACK,
    GREY,
    message_figure,
    method_style,
    panels,
    plain_log,
    styles_of_losses,
)
from focalcal.reporting.records.measurements import loss_order
from focalcal.reporting.tables.cells import GAMMA, MINUS, loss_name
from focalcal.reporting.tables.overview import SCALES, metric_name

LEAST_SHOWN_TEMPERATURE = 0.1
"""Below it predictions are one-hot in all but name and every surface is flat."""


@dataclass
class Search:
    """The searches of one loss's runs: a surface each, float (gammas, temperatures), and what was chosen."""

    gammas: NDArray[np.float64]
    temperatures: NDArray[np.float64]
    surfaces: list[NDArray[np.float64]] = field(default_factory=list)
    chosen: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """method -> (gamma, temperature) of each run."""

    def best_temperatures(self) -> NDArray[np.float64]:
        """Return for each run and gamma the temperature with the least score, float (runs, gammas)."""
        return np.array([self.temperatures[surface.argmin(axis=1)] for surface in self.surfaces])


@dataclass(frozen=True)
class Line:
    """A least-squares line T = intercept + slope gamma, and the share of variance it explains."""

    intercept: float
    slope: float
    r_squared: float


def collect_searches(
    runs: Iterable[tuple[str, Mapping[str, NDArray], Sequence[Mapping[str, Any]]]],
    criterion: str,
) -> dict[str, Search]:
    """Return the searches by `criterion` of each loss, gammas ascending, losses in the suite's order.

    `runs` gives loss, surfaces.npz and fits of each run.
    """
    searches: dict[str, Search] = {}
    for loss, arrays, fits in runs:
        if criterion not in arrays:
            continue
        order = np.argsort(arrays["gammas"])
        search = searches.setdefault(loss, Search(arrays["gammas"][order], arrays["temperatures"]))
        search.surfaces.append(arrays[criterion][order])
        for fit in fits:
            if fit["method"] in {"ts", "fts"} and fit["criterion"] == criterion:
                search.chosen.setdefault(fit["method"], []).append((fit["gamma"], fit["temperature"]))
    return {loss: searches[loss] for loss in sorted(searches, key=loss_order)}


def fit_line(gammas: NDArray, temperatures: NDArray) -> Line:
    """Return the least-squares line through points (n,); r_squared is 1 where the temperatures are equal."""
    slope, intercept = np.polyfit(gammas, temperatures, 1)
    residual = temperatures - (intercept + slope * gammas)
    spread = float(((temperatures - temperatures.mean()) ** 2).sum())
    explained = 1.0 if spread == 0 else 1 - float((residual**2).sum()) / spread
    return Line(float(intercept), float(slope), explained)


def temperature(diagnostics: Sequence[Mapping[str, Any]]) -> Figure:
    """Return test ECE against T by loss, mean over seeds; a marker is TS: mean chosen T, mean ECE with it."""
    curves: dict[str, list[NDArray]] = {}
    scaled: dict[str, list[Mapping[str, Any]]] = {}
    for record in diagnostics:
        loss = record["run"]["loss"]
        curves.setdefault(loss, []).append(np.array(record["curve"]["ece"]))
        scaled.setdefault(loss, []).extend(
            entry for entry in record["reliability"] if entry["method"] == "ts"
        )
    if not curves:
        return message_figure("No run at hand succeeded.")
    grid = np.array(diagnostics[0]["curve"]["temperatures"])
    looks = styles_of_losses(list(curves))
    figure, (axis,) = panels(1, width=6.4, height=3.6)
    least_shown = max(grid[0], LEAST_SHOWN_TEMPERATURE)
    for loss, look in looks.items():
        mean = np.mean(curves[loss], axis=0) * 100
        axis.plot(grid, mean, color=look.color, linestyle=look.line, label=loss_name(loss))
        if scaled[loss]:
            at = float(np.mean([entry["temperature"] for entry in scaled[loss]]))
            least_shown = min(least_shown, at)
            height = pool(scaled[loss]).ece * 100
            axis.plot(at, height, look.marker, color=look.color, markersize=8, markeredgecolor="white")
    axis.axvline(1, color=BLACK, linewidth=0.8, linestyle=":")
    axis.text(
        1.02, 0.99, "as trained", transform=axis.get_xaxis_transform(), va="top", fontsize=8, color=GREY
    )
    plain_log(axis, "x")
    plain_log(axis, "y")
    axis.set(xlabel="temperature T", ylabel="test ECE (%)", xlim=(least_shown / 1.1, grid[-1] * 1.1))
    axis.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def surface(searches: Mapping[str, Search], criterion: str) -> Figure:
    """Return the validation score over gamma and T, mean over seeds, a panel a loss; chosen points marked."""
    if not searches:
        return message_figure(f"No run at hand has a search by {criterion}.")
    figure, axes = panels(len(searches), width=3.3, height=2.9)
    scale = SCALES[criterion]
    means = {loss: np.mean(search.surfaces, axis=0) * scale.factor for loss, search in searches.items()}
    shown = {loss: search.temperatures >= LEAST_SHOWN_TEMPERATURE for loss, search in searches.items()}
    positive = np.concatenate([means[loss][:, shown[loss]].ravel() for loss in searches])
    positive = np.log10(np.maximum(positive, 1e-6))
    limits = positive.min(), positive.max()
    for axis, (loss, search) in zip(axes, searches.items(), strict=True):
        temperatures = search.temperatures[shown[loss]]
        rows = np.arange(len(search.gammas))
        image = axis.pcolormesh(
            temperatures,
            rows,
            np.log10(np.maximum(means[loss][:, shown[loss]], 1e-6)),
            cmap="cividis_r",
            vmin=limits[0],
            vmax=limits[1],
            shading="nearest",
            rasterized=True,
        )
        best = search.best_temperatures().mean(axis=0)
        axis.plot(best, rows, color="white", linewidth=1, linestyle=":")
        for method, points in search.chosen.items():
            look = method_style(method)
            at = [(t, int(np.flatnonzero(search.gammas == g)[0])) for g, t in points if g in search.gammas]
            if at:
                axis.plot(*zip(*at, strict=True), look.marker, color=look.color, markersize=6,
                          markeredgecolor="white", markeredgewidth=0.8)  # fmt: skip
        axis.set_yticks(rows, [f"{gamma:g}" for gamma in search.gammas])
        axis.set(title=loss_name(loss), xlabel="temperature T", ylabel=GAMMA)
        axis.grid(visible=False)
        plain_log(axis, "x")
    bar = figure.colorbar(image, ax=axes, shrink=0.8, pad=0.01)
    ticks = [v for v in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if limits[0] <= np.log10(v) <= limits[1]]
    bar.set_ticks(np.log10(ticks), labels=[f"{value:g}" for value in ticks])
    bar.set_label(f"validation {scale.inline}, mean over seeds")
    handles = [
        axes[0].plot([], [], method_style(m).marker, color=method_style(m).color)[0] for m in ("ts", "fts")
    ]
    handles.append(axes[0].plot([], [], ":", color=GREY)[0])
    figure.legend(
        handles, ["TS chose", "FTS chose", f"best T at each {GAMMA}"], loc="outside upper center", ncols=3
    )
    return figure


def relation(searches: Mapping[str, Search], criterion: str) -> Figure:
    """Return the best T at each gamma of the focal map by loss, mean over seeds, with least-squares lines."""
    if not searches:
        return message_figure(f"No run at hand has a search by {criterion}.")
    looks = styles_of_losses(list(searches))
    figure, (axis,) = panels(1, width=6.6, height=3.8)
    for loss, search in searches.items():
        look, best = looks[loss], search.best_temperatures()
        mean, gammas = best.mean(axis=0), search.gammas
        # A best T at the end of the grid would lie beyond it: shown open, and no part of the line.
        inside = ~np.isin(best, search.temperatures[[0, -1]]).any(axis=0)
        label = f"{loss_name(loss)}: no line, T at the end of its grid"
        if inside.sum() >= 2:
            line = fit_line(gammas[inside], mean[inside])
            label = f"{loss_name(loss)}: {_equation(line)}"
            fitted = line.intercept + line.slope * gammas
            axis.plot(gammas, fitted, color=look.color, linestyle=look.line, linewidth=1)
        axis.plot(gammas[~inside], mean[~inside], look.marker, color=look.color, markerfacecolor="white")
        spread = best.std(axis=0, ddof=1)[inside] if len(best) > 1 else None
        axis.errorbar(
            gammas[inside],
            mean[inside],
            yerr=spread,
            fmt=look.marker,
            color=look.color,
            capsize=2,
            label=label,
        )
    axis.set(xlabel=f"{GAMMA} of the focal map", ylabel="best temperature T", ylim=(0, None))
    chosen_by = metric_name(criterion)
    axis.set_title(f"chosen by validation {chosen_by}; bars: std over seeds", fontweight="normal", fontsize=8)
    axis.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def _equation(line: Line) -> str:
    sign = "+" if line.slope >= 0 else MINUS
    return f"T = {line.intercept:.2f} {sign} {abs(line.slope):.2f} {GAMMA}, R² = {line.r_squared:.2f}"
