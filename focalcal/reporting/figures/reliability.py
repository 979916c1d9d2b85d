"""Reliability diagrams with confidence histograms: a row a loss, a column a calibrator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from focalcal.reporting.figures.style import BLACK, GREY, message_figure, method_style
from focalcal.reporting.records.measurements import loss_order
from focalcal.reporting.tables.cells import loss_name
from focalcal.reporting.tables.overview import method_name

RESAMPLES = 2000
FEW = 20
"""A bin with fewer samples a run than this is drawn faintly: its accuracy says little."""


@dataclass(frozen=True)
class Pooled:
    """The bins of several runs of one setting and calibrator, float (bins,) each."""

    runs: int
    count: NDArray[np.float64]
    confidence: NDArray[np.float64]
    """Mean confidence of each bin, NaN where empty."""
    accuracy: NDArray[np.float64]
    ece: float
    """Mean over runs of each run's own ECE: pooling first would let errors of different runs cancel."""


def pool(bins: Sequence[Mapping[str, Any]]) -> Pooled:
    """Return the pooled bins of runs, each with count, confidence and accuracy a bin (None where empty)."""
    count = np.array([run["count"] for run in bins], float)
    confidence, accuracy = (
        np.array([[0.0 if value is None else value for value in run[key]] for run in bins])
        for key in ("confidence", "accuracy")
    )
    total = count.sum(axis=0)
    with np.errstate(invalid="ignore"):
        pooled = [(count * values).sum(axis=0) / total for values in (confidence, accuracy)]
    errors = (count * np.abs(confidence - accuracy)).sum(axis=1) / count.sum(axis=1)
    return Pooled(len(bins), total, *pooled, float(errors.mean()))


def accuracy_band(pooled: Pooled, *, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the 95 % bootstrap interval of each bin's accuracy over the test samples of one run.

    The runs share one test set, so that pooling them adds no samples: a bin counts with its mean number of
    samples a run. Resampling right and wrong answers of a bin with replacement is a binomial draw.
    """
    samples = np.maximum(1, np.rint(pooled.count / pooled.runs)).astype(int)
    filled = pooled.count > 0
    chance = np.where(filled, pooled.accuracy, 0.0).clip(0, 1)
    draws = np.random.default_rng(seed).binomial(samples, chance, (RESAMPLES, len(samples))) / samples
    low, high = np.quantile(draws, (0.025, 0.975), axis=0)
    return np.where(filled, low, np.nan), np.where(filled, high, np.nan)


def reliability(diagnostics: Sequence[Mapping[str, Any]], methods: Sequence[str]) -> Figure:
    """Return the diagrams of one place's runs, seeds pooled."""
    collected: dict[str, dict[str, list]] = {}
    for record in diagnostics:
        for entry in record["reliability"]:
            if entry["method"] in methods:
                collected.setdefault(record["run"]["loss"], {}).setdefault(entry["method"], []).append(entry)
    if not collected:
        return message_figure("No run at hand has reliability data for these calibrators.")
    losses = sorted(collected, key=loss_order)
    columns = [m for m in methods if any(m in found for found in collected.values())]
    figure = Figure(figsize=(1.8 * len(columns) + 0.6, 2.2 * len(losses) + 0.3))
    figure.get_layout_engine().set(h_pad=0.02, w_pad=0.04)
    grid = figure.add_gridspec(2 * len(losses), len(columns), height_ratios=[3, 1] * len(losses))
    for row, loss in enumerate(losses):
        for column, method in enumerate(columns):
            cells = [figure.add_subplot(grid[2 * row + part, column]) for part in (0, 1)]
            entries = collected[loss].get(method)
            if entries is None:
                for cell in cells:
                    cell.axis("off")
                cells[0].text(0.5, 0.5, "does not apply", ha="center", va="center", color=GREY, fontsize=8)
                continue
            pooled = pool(entries)
            _diagram(cells[0], pooled, method)
            _histogram(cells[1], pooled, method)
            _label(cells, f"{loss_name(loss)}\naccuracy", first=column == 0, last=row == len(losses) - 1)
            if row == 0:
                cells[0].set_title(method_name(method), loc="center")
    return figure


def _label(cells: list[Axes], name: str, *, first: bool, last: bool) -> None:
    """Put labels at the outer panels only: names left of the first column, confidence under the last row."""
    if first:
        cells[0].set_ylabel(name, fontweight="bold")
        cells[1].set_ylabel("samples")
    for cell in cells:
        cell.tick_params(labelleft=first)
    cells[1].tick_params(labelbottom=last)
    cells[1].set_xlabel("confidence" if last else "")


def _diagram(axis: Axes, pooled: Pooled, method: str) -> None:
    color = method_style(method).color
    low, high = accuracy_band(pooled)
    filled = np.flatnonzero(pooled.count > 0)
    axis.plot([0, 1], [0, 1], color=BLACK, linewidth=0.8, linestyle="--")
    x = pooled.confidence[filled]
    axis.fill_between(x, low[filled], high[filled], color=color, alpha=0.22, linewidth=0)
    axis.plot(x, pooled.accuracy[filled], color=color, linewidth=1.2)
    solid = pooled.count / pooled.runs >= FEW
    for mask, face in ((solid, color), (~solid, "white")):
        chosen = filled[mask[filled]]
        axis.plot(
            pooled.confidence[chosen],
            pooled.accuracy[chosen],
            "o",
            color=color,
            markerfacecolor=face,
            markersize=3.5,
        )
    axis.text(0.04, 0.96, f"ECE {pooled.ece * 100:.2f} %", transform=axis.transAxes, va="top", fontsize=8)
    axis.set(xlim=(0, 1), ylim=(0, 1), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    axis.tick_params(labelbottom=False)


def _histogram(axis: Axes, pooled: Pooled, method: str) -> None:
    bins = len(pooled.count)
    share = pooled.count / pooled.count.sum()
    axis.bar((np.arange(bins) + 0.5) / bins, share, 0.9 / bins, color=method_style(method).color, alpha=0.75)
    accuracy = np.nansum(pooled.accuracy * share)
    confidence = np.nansum(pooled.confidence * share)
    # Where the two lines part, the model is over- (dotted to the right) or underconfident on average.
    axis.axvline(accuracy, color=BLACK, linewidth=1)
    axis.axvline(confidence, color=BLACK, linewidth=1, linestyle=":")
    axis.set(xlim=(0, 1), ylim=(0, 1), xticks=[0, 0.5, 1])
    axis.set_yticks([0, 0.5, 1], ["0", "", "100 %"])
    axis.grid(visible=False)
