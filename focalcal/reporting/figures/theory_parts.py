"""What the theory figures share: looks, axes, and reading of the theory stage's tables."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from focalcal.reporting.claims.evidence import Evidence
from focalcal.reporting.figures.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION

GAMMA_LOOKS = {
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
MATCHING = "results/theory/matching.csv"
PAPER_BOX = 5.0
"""Half width of K24's box of logits."""


def axes(count: int) -> tuple[Figure, list[Axes]]:
    """Return a figure with `count` axes beside each other, each of a column's width."""
    figure = Figure(figsize=(3.9 * count, 3.3))
    return figure, np.atleast_1d(figure.subplots(1, count)).tolist()


def decades(axis: Axes) -> None:
    """Make the horizontal axis logarithmic with a plain number at each power of ten."""
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(LogLocator(subs=(1,)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())


def matches(evidence: Evidence, classes: int, column: str) -> tuple[np.ndarray, np.ndarray]:
    """Return gamma and one column of the matching table for a class count in K24's box."""
    rows = [
        row
        for row in evidence.table(MATCHING)
        if (float(row["classes"]), float(row["max_logit"])) == (classes, PAPER_BOX)
    ]
    return column_of(rows, "gamma"), column_of(rows, column)


def closest_temperature(evidence: Evidence, classes: int, gamma: float) -> float:
    """Return the temperature closest to Psi^gamma for a class count in K24's box."""
    key = {"classes": classes, "max_logit": PAPER_BOX, "gamma": gamma}
    return float(evidence.row(MATCHING, key)["temperature"])


def column_of(rows: Sequence[dict[str, str]], name: str) -> np.ndarray:
    """Return one column of a table as numbers."""
    return np.array([float(row[name]) for row in rows])


def signed(number: float) -> str:
    """Return a number with a proper minus sign."""
    return f"{number:g}".replace("-", "\N{MINUS SIGN}")
