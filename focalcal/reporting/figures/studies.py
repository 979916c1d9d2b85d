"""FTS minus TS by study and family of training losses, from the tables of several studies."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from focalcal.calibration.catalogue import METRICS
from focalcal.reporting.figures.forest import ROW_INCHES, SHOWN_METRICS
from focalcal.reporting.figures.style import BLACK, BLUE
from focalcal.reporting.statistics.tests import HIGHER, LOWER
from focalcal.reporting.text import MINUS


def studies_figure(effects: Mapping[str, pd.DataFrame]) -> Figure:
    """Return the effects of `when_fts_pays`, by the title of a study: log-loss to the left, ECE to the right.

    Fits are those chosen by the score itself; a filled point has a verdict.
    """
    own = {title: table[table["metric"] == table["criterion"]] for title, table in effects.items()}
    count = sum(1 + rows["family"].nunique() for rows in own.values())
    drawn = Figure(figsize=(7.4, ROW_INCHES * count + 0.9))
    axes = drawn.subplots(1, len(SHOWN_METRICS), sharey=True)
    labels, place = {}, 0
    for title, rows in own.items():
        look = {"va": "center", "fontweight": "bold", "fontsize": 8, "zorder": 5}
        look["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        axes[0].text(0.0, place, title, transform=axes[0].get_yaxis_transform(), **look)
        for family, of_family in rows.groupby("family", sort=False):
            place += 1
            labels[place] = family
            for axis, metric in zip(axes, SHOWN_METRICS, strict=True):
                for effect in of_family[of_family["metric"] == metric].itertuples():
                    factor = METRICS[metric].factor
                    low, value, high = (
                        factor * bound
                        for bound in (effect.interval_low, effect.difference_mean, effect.interval_high)
                    )
                    axis.plot([low, high], [place, place], color=BLUE, linewidth=1.3)
                    filled = BLUE if effect.verdict in {LOWER, HIGHER} else "white"
                    axis.plot(value, place, "o", color=BLUE, markerfacecolor=filled)
        place += 1
    for axis, metric in zip(axes, SHOWN_METRICS, strict=True):
        axis.axvline(0, color=BLACK, linewidth=0.8)
        axis.grid(visible=False, axis="y")
        axis.locator_params(axis="x", nbins=5)
        unit = METRICS[metric].difference_unit.strip() or "nats"
        axis.set_title(f"{METRICS[metric].name}, chosen by it")
        axis.set_xlabel(f"FTS {MINUS} TS ({unit}), below 0: FTS better")
    axes[0].set_yticks(list(labels), labels.values())
    axes[0].set_ylim(place - 0.4, -0.9)
    return drawn
