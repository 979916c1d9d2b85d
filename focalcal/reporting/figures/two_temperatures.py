"""The rule of two temperatures: what they predict of gamma and of the gain of FTS."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from focalcal.calibration.catalogue import METRICS
from focalcal.reporting.figures.by_size import CLASS_STYLES
from focalcal.reporting.figures.style import BLACK, GREY, legend_below, panels, plain_log
from focalcal.reporting.products import figure
from focalcal.reporting.records.measurements import LEADING
from focalcal.reporting.text import MINUS, natural_order
from focalcal.training.appearance import GAMMA

MARGIN = 1.15
"""Space around the points, as a factor."""


@figure(
    of="two_temperatures",
    order=27,
    heading="Why: two temperatures predict the sign of gamma",
    caption="One point per network. Left: the ratio of two temperatures fitted on validation data, and "
    "1 + gamma of FTS. On shaded ground the sign of gamma is as predicted; on the dashed line its size is "
    "that of very confident predictions. Right: gain of two temperatures over one on validation data, and of "
    "FTS over TS on test data; below 0, FTS is better.",
    unfolded=True,
)
def two_temperatures(frame: pd.DataFrame) -> Figure:
    """Return gamma by the ratio of temperatures, and the gain of FTS by that of two temperatures."""
    drawn, (left, right) = panels(2, height=3.4)
    datasets = sorted(set(frame["dataset"]), key=natural_order)
    for place, dataset in enumerate(datasets):
        rows = frame[frame["dataset"] == dataset]
        look = {
            **CLASS_STYLES[place % len(CLASS_STYLES)],
            "linestyle": "",
            "label": dataset,
            "markerfacecolor": "none",
        }
        left.plot(rows["ratio"], 1 + rows["gamma"], **look)
        right.plot(rows["expected_gain"], rows["estimate"], **look)
    found = [*frame["ratio"], *(1 + frame["gamma"])]
    _draw_signs(left, min(0.8, *found) / MARGIN, max(1.25, *found) * MARGIN)
    right.axhline(0, color=BLACK, linewidth=0.8)
    right.axvline(0, color=BLACK, linewidth=0.8)
    unit = METRICS[LEADING].difference_unit.strip() or "nats"
    right.set(
        title="Gain",
        xlabel=f"two temperatures {MINUS} one, validation ({unit})",
        ylabel=f"FTS {MINUS} TS, test ({unit})",
    )
    legend_below(drawn, {})
    return drawn


def _draw_signs(axis: Axes, low: float, high: float) -> None:
    """Draw the quadrants in which the sign is as predicted, and the line 1 + gamma = ratio; axes are log."""
    axis.plot([low, high], [low, high], color=GREY, linestyle="--", linewidth=1)
    axis.axhline(1, color=BLACK, linewidth=0.8)
    axis.axvline(1, color=BLACK, linewidth=0.8)
    for start, end in ((low, 1), (1, high)):
        axis.fill_between([start, end], start, end, color=GREY, alpha=0.12, linewidth=0)
    axis.set(
        title=f"Sign of {GAMMA}",
        xlabel="T rest / T top, fitted on validation data",
        ylabel=f"1 + {GAMMA} of FTS",
        xlim=(low, high),
        ylim=(low, high),
    )
    for which in "xy":
        plain_log(axis, which)
