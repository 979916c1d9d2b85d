"""What the theory figures share: styles, axes, and the temperatures that match the focal map."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from focalcal.reporting.figures.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION
from focalcal.reporting.records.sources import Sources

GAMMA_STYLES = {
    0.0: (BLACK, "-"),
    0.5: (SKY, "--"),
    1.0: (BLUE, "-"),
    2.0: (GREEN, "-."),
    3.0: (ORANGE, "-"),
    5.0: (VERMILION, "--"),
    7.0: (PURPLE, ":"),
}
"""Colour and line style of each gamma, the same in every figure."""
PUBLISHED = {
    "marker": "D",
    "markerfacecolor": "white",
    "markeredgecolor": BLACK,
    "linestyle": "none",
    "zorder": 5,
}
"""How a printed value is drawn beside ours."""
PAPER_BOX = 5.0
"""Half width of K24's box of logits."""


def columns(count: int) -> tuple[Figure, list[Axes]]:
    """Return a figure with `count` axes beside each other, each of a column's width."""
    drawn = Figure(figsize=(3.9 * count, 3.3))
    return drawn, np.atleast_1d(drawn.subplots(1, count)).tolist()


def decades(axis: Axes) -> None:
    """Make the horizontal axis logarithmic with a plain number at each power of ten."""
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(LogLocator(subs=(1,)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())


def matches(sources: Sources, classes: int) -> pd.DataFrame:
    """Return the rows of the matching table for a class count in K24's box."""
    table = sources.theory("matching")
    return table[(table["classes"] == classes) & (table["max_logit"] == PAPER_BOX)]


def closest_temperature(sources: Sources, classes: int, gamma: float) -> float:
    """Return the temperature closest to Psi^gamma for a class count in K24's box."""
    return float(matches(sources, classes).set_index("gamma").loc[gamma, "temperature"])
