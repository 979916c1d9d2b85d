"""The map of calibrators, and when focal temperature scaling pays."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullLocator

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALETTE,
    PURPLE,
    VERMILION,
    legend_below,
    method_style,
)
from focalcal.reporting.products import figure
from focalcal.reporting.tables.by_size import RUINED, map_text
from focalcal.reporting.text import MINUS

CELL_INCHES = (1.0, 0.62)
TINT = 0.28
CLASS_STYLES = (
    {"color": BLUE, "marker": "o"},
    {"color": ORANGE, "marker": "s"},
    {"color": GREEN, "marker": "^"},
    {"color": PURPLE, "marker": "D"},
    {"color": VERMILION, "marker": "v"},
    {"color": GREY, "marker": "P"},
)
"""How numbers of classes are drawn, in rising order."""


@figure(
    of="calibrator_map",
    order=1,
    heading="The map: which calibrator for my classes and validation samples?",
    caption="In each cell the calibrator with the lowest mean test log-loss, its difference from TS in per "
    "cent of the log-loss, and that of FTS. An asterisk: the {level} interval excludes 0, counting test and "
    "validation samples, networks and all cells.",
)
def calibrator_map(frame: pd.DataFrame) -> Figure:
    """Return one grid of cells per origin, classes downwards, validation samples to the right."""
    origins = list(dict.fromkeys(frame["origin"]))
    sizes = sorted(set(frame["samples"]))
    colors = _colors(frame["best"])
    heights = [max(1, frame[frame["origin"] == origin]["classes"].nunique()) for origin in origins]
    width, height = CELL_INCHES
    drawn = Figure(figsize=(width * len(sizes) + 0.9, height * sum(heights) + 0.75 * len(origins) + 0.2))
    axes = drawn.subplots(len(origins), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axis, origin in zip(axes, origins, strict=True):
        here = frame[frame["origin"] == origin]
        classes = sorted(set(here["classes"]), key=_order)
        for row in here.to_dict("records"):
            _draw_cell(axis, sizes.index(row["samples"]), classes.index(row["classes"]), row, colors)
        axis.set(xlim=(-0.5, len(sizes) - 0.5), ylim=(len(classes) - 0.5, -0.5), title=origin)
        axis.set_xticks(range(len(sizes)), [f"{size:,.0f}" for size in sizes])
        axis.set_yticks(range(len(classes)), classes)
        axis.set_ylabel("classes")
        axis.tick_params(length=0)
        axis.grid(visible=False)
        axis.spines[:].set_visible(False)
    axes[-1].set_xlabel("validation samples")
    return drawn


@figure(
    of="calibrator_map",
    order=21,
    heading="When does FTS pay? By number of classes and of validation samples",
    caption="FTS minus TS in per cent of the log-loss of TS; below 0, FTS is better. Bars are {level} "
    "intervals over test samples, validation samples and networks, corrected for the number of points. Where "
    "one of the two fails, beyond 20 %, there is no point.",
)
def fts_by_size(frame: pd.DataFrame) -> Figure:
    """Return one panel per origin, with the mean over networks for each number of classes."""
    origins = list(dict.fromkeys(frame["origin"]))
    drawn = Figure(figsize=(3.9 * len(origins), 3.3))
    axes = drawn.subplots(1, len(origins), squeeze=False)[0]
    styles = _class_styles(frame["classes"])
    for axis, origin in zip(axes, origins, strict=True):
        here = frame[(frame["origin"] == origin) & (frame["fts_ts_relative"].abs() <= RUINED)]
        for place, classes in enumerate(sorted(set(here["classes"]), key=_order)):
            rows = here[here["classes"] == classes].sort_values("samples")
            # As shares of the mean log-loss of TS, like the estimate.
            scale = (100 * rows["fts_ts_relative"] / rows["fts_ts_estimate"]).fillna(0)
            shifted = rows["samples"] * 1.04**place
            bars = [scale * (rows["fts_ts_estimate"] - rows["fts_ts_low"])]
            bars += [scale * (rows["fts_ts_high"] - rows["fts_ts_estimate"])]
            label = f"{classes} classes"
            axis.errorbar(
                shifted,
                100 * rows["fts_ts_relative"],
                yerr=[bar.clip(lower=0) for bar in bars],
                linewidth=1.2,
                elinewidth=0.9,
                capsize=2,
                label=label,
                **styles[classes],
            )
        axis.axhline(0, color=BLACK, linewidth=0.8)
        axis.set(xscale="log", title=origin, xlabel="validation samples")
        sizes = sorted(set(frame["samples"]))
        axis.set_xticks(sizes, [f"{size:,.0f}" for size in sizes], rotation=45)
        axis.xaxis.set_minor_locator(NullLocator())
    axes[0].set_ylabel(f"FTS {MINUS} TS (% of the log-loss)")
    legend_below(drawn, {})
    return drawn


@figure(
    of="fts_by_network",
    order=23,
    heading="When does FTS pay? By the temperature that the network needs",
    caption="FTS minus TS on each network against the temperature of TS, after the same fits by log-loss; "
    "below 0, FTS is better. Filled: the {level} interval excludes 0.",
)
def fts_by_temperature(frame: pd.DataFrame) -> Figure:
    """Return a panel for log-loss, Brier score and ECE each."""
    shown = ("nll", "brier", "ece")
    drawn = Figure(figsize=(3.1 * len(shown), 3.2))
    axes = drawn.subplots(1, len(shown))
    styles = _class_styles(frame["classes"])
    for axis, name in zip(axes, shown, strict=True):
        metric = METRICS[name]
        for classes in sorted(set(frame["classes"]), key=_order):
            rows = frame[frame["classes"] == classes]
            decided = rows[f"{name}_verdict"].isin(["lower", "higher"])
            look = {"linestyle": "", **styles[classes]}
            differences = metric.factor * rows[f"{name}_estimate"]
            axis.plot(rows["ts_temperature"], differences, **look, markerfacecolor="white")
            label = f"{classes} classes"
            axis.plot(rows["ts_temperature"][decided], differences[decided], **look, label=label)
        axis.axhline(0, color=BLACK, linewidth=0.8)
        unit = metric.difference_unit.strip() or ("nats" if name == "nll" else "")
        axis.set(title=metric.label, xlabel="T of TS", ylabel=f"FTS {MINUS} TS{unit and f' ({unit})'}")
    legend_below(drawn, {})
    return drawn


def _draw_cell(axis: Axes, column: int, line: int, row: dict, colors: dict[str, str]) -> None:
    color = colors[row["best"]]
    axis.add_patch(Rectangle((column - 0.48, line - 0.46), 0.96, 0.92, color=color, alpha=TINT, linewidth=0))
    texts: list[tuple[str, dict]] = [
        (METHODS[row["best"]].label, {"fontweight": "bold", "fontsize": 8.5}),
        (map_text(row, "best_ts"), {"fontsize": 7.5}),
        (map_text(row, "fts_ts", "FTS "), {"fontsize": 7.5}),
    ]
    if row["best"] == "fts":
        texts = texts[:2]
    if row["best"] == "ts":
        texts = [texts[0], texts[2]]
    for number, (text, look) in enumerate(texts):
        place = line + 0.27 * (number - (len(texts) - 1) / 2)
        axis.text(column, place, text, ha="center", va="center", color=BLACK, **look)


def _colors(best: pd.Series) -> dict[str, str]:
    """Return a colour for each calibrator: its own, or another one if that of an earlier one."""
    found: dict[str, str] = {}
    for method in sorted(set(best), key=list(METHODS).index):
        free = [color for color in PALETTE.values() if color not in found.values()]
        own = method_style(method).color
        found[method] = own if own in free else free[-1]
    return found


def _class_styles(classes: pd.Series) -> dict[str, dict]:
    return dict(zip(sorted(set(classes), key=_order), CLASS_STYLES * 3, strict=False))


def _order(classes: str) -> int:
    return int(classes.split(maxsplit=1)[0].replace(",", ""))
