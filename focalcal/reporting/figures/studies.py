"""FTS minus TS by study and family of training losses, from the tables of several studies."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from focalcal.calibration.catalogue import METRICS
from focalcal.reporting.figures.forest import SHOWN_METRICS, Difference, ForestRow, draw_forest
from focalcal.reporting.figures.style import BLUE, Style

STYLE_OF_FAMILIES = Style(BLUE, "o")


def studies_figure(effects: Mapping[str, pd.DataFrame]) -> Figure:
    """Return the effects of `when_fts_pays`, by the title of a study: log-loss to the left, ECE to the right.

    Fits are those chosen by the score itself; a filled point has a verdict.
    """
    groups = {
        title: _family_rows(rows[rows["metric"] == rows["criterion"]]) for title, rows in effects.items()
    }
    return draw_forest(groups, {metric: f"{METRICS[metric].name}, chosen by it" for metric in SHOWN_METRICS})


def _family_rows(effects: pd.DataFrame) -> list[ForestRow]:
    found = {
        (row.family, row.metric): Difference(
            row.interval_low, row.difference_mean, row.interval_high, row.verdict
        )
        for row in effects.itertuples()
    }
    return [
        ForestRow(
            family, STYLE_OF_FAMILIES, {metric: found.get((family, metric)) for metric in SHOWN_METRICS}
        )
        for family in effects["family"].unique()
    ]
