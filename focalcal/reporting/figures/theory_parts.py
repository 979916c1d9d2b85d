"""What the theory figures share: styles, axes, and the temperatures that match the focal map."""

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from focalcal.reporting.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    panels,
)
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.text import format_short
from focalcal.training.appearance import GAMMA

GAMMA_STYLES = {
    -0.5: (GREY, ":"),
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


columns = partial(panels, width=3.9, height=3.0)
"""Returns a figure with so many axes beside each other, each of a column's width, and the axes."""


def gamma_lines(axis: Axes, x: np.ndarray, function: Callable, gammas: Iterable[float]) -> None:
    """Draw function(x, gamma) over x for each gamma, in its style and with its label."""
    for gamma in gammas:
        color, line = GAMMA_STYLES[gamma]
        axis.plot(
            x, function(x, gamma), color=color, linestyle=line, label=f"{GAMMA} = {format_short(gamma)}"
        )


def matches(sources: Sources, classes: int) -> pd.DataFrame:
    """Return the rows of the matching table for a class count in K24's box."""
    table = sources.theory("matching")
    return table[(table["classes"] == classes) & (table["max_logit"] == PAPER_BOX)]


def closest_temperature(sources: Sources, classes: int, gamma: float) -> float:
    """Return the temperature closest to Psi^gamma for a class count in K24's box."""
    return float(matches(sources, classes).set_index("gamma").loc[gamma, "temperature"])
