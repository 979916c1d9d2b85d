"""Reliability diagrams: of calibrators, while training (M20 Fig. 2), with and without Psi (C21 Fig. 4)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator
from numpy.typing import NDArray

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.common.intervals import CONFIDENCE, tails
from focalcal.reporting.figures.style import (
    BLACK,
    GREY,
    legend_below,
    message_figure,
    method_handle,
    method_handles,
    method_style,
    setting_title,
)
from focalcal.reporting.products import figure
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.tables.recovery import PARADIGMS
from focalcal.training.appearance import GAMMA, Style, is_smoothed, loss_label, loss_order

RESAMPLES = 2000
FEW = 20
"""A bin with fewer samples per run than this is left out or drawn open: its accuracy says little."""
COLUMNS = 3
"""Diagrams side by side."""
TICKS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
MOST_SURE = 0.9995
"""Nearer to 1 (or to 0) a probability is drawn at the edge of an axis of log-odds."""

SIDES = {"without Ψ": "none", "with Ψ": "psi"}
"""What C21's paradigms compare, with the method whose colour and marker it has."""
SIDE_STYLES = {
    "before": ("as trained", Style(GREY, "o")),
    "after": ("recommended", Style(BLACK, "*")),
}
EPOCH_COLORS = LinearSegmentedColormap.from_list("epochs", ["#CC8A00", "#C4480A", "#8A1F45", "#3A0A45"])
EPOCH_MARKERS = "os^Dvp"


@dataclass(frozen=True)
class Pooled:
    """The bins of several runs of one loss and calibrator, float (bins,) each; NaN where a bin is empty."""

    runs: int
    count: NDArray[np.float64]
    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    ece: float
    """Mean over runs of each run's own ECE: pooling first would let errors of different runs cancel."""

    @property
    def share(self) -> NDArray[np.float64]:
        """Return the share of samples in each bin."""
        return self.count / self.count.sum()

    @property
    def sufficient(self) -> NDArray[np.bool_]:
        """Return which bins have enough samples per run to say something."""
        return self.count / self.runs >= FEW


def pool(bins: Sequence[Mapping[str, Any]]) -> Pooled:
    """Return the pooled bins of runs, each with count, confidence and accuracy per bin (None where empty)."""
    keys = ("count", "confidence", "accuracy")
    arrays = np.array([[run[key] for run in bins] for key in keys], float)
    count, confidence, accuracy = np.nan_to_num(arrays)
    total = count.sum(axis=0)
    with np.errstate(invalid="ignore"):
        sure, right = ((count * values).sum(axis=0) / total for values in (confidence, accuracy))
    errors = (count * np.abs(confidence - accuracy)).sum(axis=1) / count.sum(axis=1)
    return Pooled(len(bins), total, sure, right, float(errors.mean()))


def accuracy_band(pooled: Pooled, confidence: float) -> NDArray[np.float64]:
    """Return the bootstrap interval of each bin's accuracy over the test samples of one run, (2, bins).

    The runs share one test set, so that pooling them adds no samples: a bin counts with its mean number of
    samples per run. Resampling the outcomes of a bin with replacement is a binomial draw.
    """
    samples = np.maximum(1, np.rint(pooled.count / pooled.runs)).astype(int)
    chance = np.nan_to_num(pooled.accuracy).clip(0, 1)
    draws = np.random.default_rng(0).binomial(samples, chance, (RESAMPLES, len(samples))) / samples
    return np.where(pooled.count > 0, np.quantile(draws, tails(confidence), axis=0), np.nan)


@dataclass(frozen=True)
class Curve:
    """One line of a reliability diagram."""

    name: str
    pooled: Pooled
    style: Style


@figure(
    section="fits",
    order=10,
    heading="Reliability diagrams",
    caption="Accuracy against confidence on test data before and after each calibrator, one diagram per "
    "training loss, n seeds pooled. Bands: {level} bootstrap interval over the test samples of one run. "
    "Numbers: ECE. Below each diagram: samples in each bin. Bins with fewer than 20 samples per run are left "
    "out.",
    inputs=("runs", "diagnostics"),
    scope="dataset and model",
    settings=("confidence", "criterion", "reliability_methods"),
)
def reliability(sources: Sources) -> Figure:
    """Return the diagrams of one dataset and model: one per loss, with one line per calibrator."""
    found: dict[tuple[str, str], list] = {}
    gammas = {}
    for run, fits in sources.reliability:
        gammas[run["loss"]] = run["gamma"]
        for method, fit in fits.items():
            found.setdefault((run["loss"], method), []).append(fit)
    methods = [m for m in sources.setting("reliability_methods") if any(m == key[1] for key in found)]
    if not methods:
        return message_figure("No available run has reliability data for these calibrators.")
    curves: dict[str, list[Curve]] = {}
    for loss, method in product(sorted(gammas, key=loss_order), methods):
        # With gamma 0 such a map is the identity: its line would repeat the one as trained.
        identity = METHODS[method].needs_training_gamma and gammas[loss] == 0
        if (loss, method) in found and not identity:
            curve = Curve(METHODS[method].label, pool(found[loss, method]), method_style(method))
            curves.setdefault(loss, []).append(curve)
    drawn, axes = diagrams_by_loss(curves, sources.dataset_model)
    add_bands(axes, curves.values(), sources.confidence)
    shown = {curve.name for here in curves.values() for curve in here}
    legend_below(drawn, {name: handle for name, handle in method_handles(methods).items() if name in shown})
    return drawn


@figure(
    section="fits",
    order=2,
    heading="Before and after the recommended calibrator",
    caption="Accuracy against confidence on test data, as trained and after the recommended calibrator, one "
    "diagram per training loss, n seeds pooled. Bands: {level} bootstrap interval over the test samples of "
    "one run. Numbers: ECE. Bins with fewer than 20 samples per run are left out.",
    inputs=("runs", "recommended"),
    settings=("confidence",),
    scope="dataset and model",
)
def before_after(sources: Sources) -> Figure:
    """Return one diagram per loss."""
    found: dict[str, list] = {}
    for run, content in sources.recommended:
        found.setdefault(run["loss"], []).append(content["recommendation"]["reliability"])
    if not found:
        return message_figure("No available run has a recommended calibrator.")
    return draw_before_after(
        {loss: found[loss] for loss in sorted(found, key=loss_order)},
        sources.dataset_model,
        sources.confidence,
    )


def draw_before_after(
    found: Mapping[str, Sequence[Mapping[str, Any]]], title: str, confidence: float = CONFIDENCE
) -> Figure:
    """Return one diagram per loss, from the `reliability` of the recommendations of its runs."""
    curves = {
        loss: [
            Curve(name, pool([run[side] for run in runs]), style)
            for side, (name, style) in SIDE_STYLES.items()
        ]
        for loss, runs in found.items()
    }
    drawn, axes = diagrams_by_loss(curves, title)
    add_bands(axes, curves.values(), confidence)
    names = {name: Line2D([], [], **style.options(linestyle="")) for name, style in SIDE_STYLES.values()}
    legend_below(drawn, names)
    return drawn


def add_bands(
    axes: Iterable[tuple[Axes, Axes]], curves: Iterable[Sequence[Curve]], confidence: float
) -> None:
    """Draw the interval of each line of each diagram, and list the errors."""
    for (upper, _), here in zip(axes, curves, strict=True):
        for curve in here:
            reliable = curve.pooled.sufficient
            band = accuracy_band(curve.pooled, confidence)[:, reliable]
            look = {"color": curve.style.color, "alpha": 0.18, "linewidth": 0}
            upper.fill_between(curve.pooled.confidence[reliable], *band.clip(*upper.get_ylim()), **look)
        _list_errors(upper, here)


def diagrams_by_loss(
    curves: Mapping[str, Sequence[Curve]], dataset_model: str
) -> tuple[Figure, list[tuple[Axes, Axes]]]:
    """Return a figure with one diagram per loss, and its axes: accuracy, and below it the samples per bin.

    Probabilities are on a scale of log-odds: a confident network has most of its samples near 1. Bins with
    few samples per run are left out.
    """
    columns = min(COLUMNS, len(curves))
    rows = math.ceil(len(curves) / columns)
    drawn = Figure(figsize=(max(3.6, 2.6 * columns + 0.3), 3.3 * rows + 0.7))
    everything = [curve for here in curves.values() for curve in here]
    drawn.suptitle(setting_title(dataset_model, (curve.pooled.runs for curve in everything)))
    limits = _odds_limits(everything)
    grid = drawn.subplots(2 * rows, columns, squeeze=False, sharex=True, height_ratios=[3, 1.3] * rows)
    pairs = [(upper, lower) for row in range(rows) for upper, lower in grid[2 * row : 2 * row + 2].T]
    for upper, lower in pairs[len(curves) :]:
        upper.remove()
        lower.remove()
    pairs = pairs[: len(curves)]
    for (upper, lower), (loss, here) in zip(pairs, curves.items(), strict=True):
        upper.plot(limits, limits, color=BLACK, linewidth=0.8, linestyle="--")
        for curve in here:
            shown = curve.pooled.sufficient
            look = curve.style.options(linewidth=1.2, markersize=4, markeredgewidth=0)
            upper.plot(curve.pooled.confidence[shown], curve.pooled.accuracy[shown].clip(*limits), **look)
            lower.plot(curve.pooled.confidence[shown], 100 * curve.pooled.share[shown], **look)
        upper.set(title=loss_label(loss), xlabel="")
        for odds in (upper.xaxis, upper.yaxis):
            odds.axes.set(**{f"{odds.axis_name}scale": "logit", f"{odds.axis_name}lim": limits})
            odds.set_major_locator(FixedLocator([tick for tick in TICKS if limits[0] < tick < limits[1]]))
            odds.set_major_formatter(lambda value, _: f"{100 * value:.4g}")
            odds.set_minor_locator(NullLocator())
        # The same scale everywhere: shares can be compared between diagrams and figures.
        lower.set(yscale="log", ylim=(0.05, 160), xlabel="confidence (%)")
        lower.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
        lower.tick_params(labelbottom=True)
        lower.tick_params(which="minor", left=False)
    for upper, lower in pairs[::columns]:
        upper.set_ylabel("accuracy (%)")
        lower.set_ylabel("samples (%)")
    return drawn, pairs


def _odds_limits(curves: Iterable[Curve]) -> tuple[float, float]:
    """Return the probabilities between which axes of log-odds show the bins with enough samples."""
    parts = [
        values[c.pooled.sufficient] for c in curves for values in (c.pooled.confidence, c.pooled.accuracy)
    ]
    values = np.concatenate([*parts, [0.5]]).clip(1 - MOST_SURE, MOST_SURE)
    odds = values / (1 - values)
    # Room for the points at the edge.
    low, high = odds.min() / 1.3, odds.max() * 1.3
    return float(low / (1 + low)), float(high / (1 + high))


@figure(
    section="training",
    order=43,
    heading="Reliability on training data while training (M20 Fig. 2)",
    caption="Accuracy against confidence of training samples in some epochs, one diagram per loss, n seeds "
    "pooled; below it the samples in each bin. Bins with fewer than 20 samples per run are left out. Each "
    "sample is predicted once per epoch while the weights change, augmented and in training mode; M20 "
    "evaluates the training set after the epoch.",
    inputs=("runs", "histories", "records"),
    scope="dataset and model",
    when="trained",
)
def snapshots(sources: Sources) -> Figure:
    """Return one diagram per loss with one line per epoch that all runs kept."""
    runs = [(run["loss"], record["snapshots"]) for run, record in sources.records()]
    kept = [{snapshot["epoch"] for snapshot in found} for _, found in runs]
    epochs = sorted(set.intersection(*kept)) if kept else []
    if not epochs:
        return message_figure("The recipe keeps no snapshots; its snapshot_epochs say after which epochs.")
    colors = map(to_hex, EPOCH_COLORS(np.linspace(0, 1, len(epochs))))
    styles = {
        epoch: Style(color, EPOCH_MARKERS[number % len(EPOCH_MARKERS)])
        for number, (epoch, color) in enumerate(zip(epochs, colors, strict=True))
    }
    curves: dict[str, list[Curve]] = {}
    for loss in sorted({loss for loss, _ in runs}, key=loss_order):
        for epoch, style in styles.items():
            bins = [s for name, found in runs if name == loss for s in found if s["epoch"] == epoch]
            curves.setdefault(loss, []).append(Curve(f"epoch {epoch}", pool(bins), style))
    drawn, _ = diagrams_by_loss(curves, sources.dataset_model)
    drawn.suptitle(f"{drawn.get_suptitle()}, training data")
    handles = {f"epoch {epoch}": Line2D([], [], **style.options()) for epoch, style in styles.items()}
    legend_below(drawn, handles)
    return drawn


@figure(
    section="recovery",
    order=41,
    heading="Reliability with and without Ψ (C21 Fig. 4)",
    caption="Accuracy against confidence on test data, n seeds pooled, without and with Ψ. One row per "
    "paradigm of C21 (Standard: as trained; TS_FL: temperature fitted by focal loss; LS: label smoothing), "
    "one column per training gamma. Open points: fewer than 20 samples per run.",
    inputs=("runs", "recovery"),
    scope="dataset and model",
)
def recovery_reliability(sources: Sources) -> Figure:
    """Return the diagrams of one dataset and model with and without Psi."""
    cells = _paradigm_bins(sources)
    if not cells:
        return message_figure("No available run was trained with focal loss of one known gamma above 0.")
    rows = [paradigm for paradigm in PARADIGMS if any(key[0] == paradigm for key in cells)]
    gammas = sorted({gamma for _, gamma in cells})
    drawn = Figure(figsize=(2.1 * len(gammas) + 0.5, 2.1 * len(rows) + 0.8))
    runs = (pooled.runs for sides in cells.values() for pooled in sides.values())
    drawn.suptitle(setting_title(sources.dataset_model, runs))
    axes = drawn.subplots(len(rows), len(gammas), squeeze=False, sharex=True, sharey=True)
    for (row, paradigm), (column, gamma) in product(enumerate(rows), enumerate(gammas)):
        axis = axes[row, column]
        if (paradigm, gamma) in cells:
            _sides(axis, cells[paradigm, gamma])
        else:
            axis.axis("off")
        if row == 0:
            axis.set_title(f"training {GAMMA} = {gamma:g}", loc="center")
        if column == 0:
            axis.set_ylabel(f"{paradigm}\naccuracy")
    for column in axes.T:
        lowest = [axis for axis in column if axis.axison][-1]
        lowest.set_xlabel("confidence")
        lowest.tick_params(labelbottom=True)
    legend_below(drawn, {side: method_handle(method) for side, method in SIDES.items()})
    return drawn


def _paradigm_bins(sources: Sources) -> dict[tuple[str, float], dict[str, Pooled]]:
    """Return the pooled bins of each side by paradigm and training gamma above 0."""
    found: dict[tuple[str, float], dict[str, list]] = {}
    for run, record in sources.recovery:
        gamma, bins = record["run"]["gamma"], {p["method"]: p["reliability"] for p in record["predictions"]}
        for paradigm, methods in PARADIGMS.items():
            if gamma and is_smoothed(run["loss"]) == (paradigm == "LS") and bins.keys() >= set(methods):
                cell = found.setdefault((paradigm, gamma), {side: [] for side in SIDES})
                for side, method in zip(cell, methods, strict=True):
                    cell[side].append(bins[method])
    return {key: {side: pool(runs) for side, runs in sides.items()} for key, sides in found.items()}


def _sides(axis: Axes, sides: Mapping[str, Pooled]) -> None:
    """Draw both sides in one panel, with the test error and each side's ECE."""
    (raw, *_) = sides.values()
    error = 1 - np.nansum(raw.accuracy * raw.share)
    lines = [f"{METRICS['error'].name} {100 * error:.2f} %"]
    for side, pooled in sides.items():
        _reliability_line(axis, pooled, method_style(SIDES[side]))
        lines.append(f"{METRICS['ece'].label} {side} {100 * pooled.ece:.2f} %")
    axis.text(0.97, 0.03, "\n".join(lines), transform=axis.transAxes, ha="right", va="bottom", fontsize=7)
    axis.set(xlim=(0, 1.03), ylim=(0, 1.03), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])


def _reliability_line(axis: Axes, pooled: Pooled, style: Style) -> None:
    """Draw accuracy against confidence, bins with few samples open, and the diagonal."""
    axis.plot([0, 1], [0, 1], color=BLACK, linewidth=0.8, linestyle="--")
    filled = pooled.count > 0
    look = style.options(linewidth=1.2, markersize=3.5, markerfacecolor="white")
    axis.plot(pooled.confidence[filled], pooled.accuracy[filled], **look)
    shown, look = pooled.sufficient, style.options(linestyle="", markersize=3.5)
    axis.plot(pooled.confidence[shown], pooled.accuracy[shown], **look)


def _list_errors(axis: Axes, curves: Sequence[Curve]) -> None:
    """Write the ECE of each line into the corner that the first one, as trained, leaves free."""
    raw = curves[0].pooled
    underconfident = np.nansum((raw.accuracy - raw.confidence) * raw.share) > 0
    lines = [(f"{METRICS['ece'].label} (%)", BLACK)]
    lines += [(f"{curve.name} {100 * curve.pooled.ece:.2f}", curve.style.color) for curve in curves]
    side, x, top = ("right", 0.98, 0.03 + 0.09 * len(lines)) if underconfident else ("left", 0.03, 0.99)
    for number, (text, color) in enumerate(lines):
        place = {"transform": axis.transAxes, "ha": side, "va": "top", "fontsize": 7.5}
        axis.text(x, top - 0.09 * number, text, color=color, **place)
