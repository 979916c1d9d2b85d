"""What all charts share: Vega-Lite through Altair, data as compact CSV, and choices that filter them.

Charts hold the words that tables show, so that a choice such as `Dataset: cifar10` filters both: it is called
like the column that it filters.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

import altair as alt
import pandas as pd

from focalcal.calibration.catalogue import RANKED
from focalcal.reporting.figures.style import GREY, PALETTE
from focalcal.reporting.products import Product
from focalcal.training.appearance import loss_label, loss_styles

VEGA_LITE = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
"""The version of Vega-Lite that the specifications are written in, which the report must carry."""
ROW_PIXELS = 19
DIGITS = 5
"""Decimals of differences in tooltips."""
SIGNED = ("Difference from TS", "Interval")
"""What tooltips call a difference and its interval."""
NARROW = "windowSize()[0] < 600"
"""The expression that is true on a phone."""
SMALLER = {"expr": f"{NARROW} ? 10 : 12"}
CONFIG = {
    "background": "transparent",
    "font": "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif",
    "view": {"stroke": None},
    "axis": {"labelFontSize": SMALLER, "titleFontSize": SMALLER, "gridColor": "#DDDDDD"},
    "axisX": {"labelOverlap": "greedy", "labelSeparation": 8, "tickCount": 6},
    "axisY": {
        "domain": False,
        "ticks": False,
        "grid": True,
        "labelPadding": 8,
        "labelLimit": {"expr": f"{NARROW} ? 150 : 260"},
    },
    "legend": {
        "orient": "bottom",
        "columns": {"expr": f"{NARROW} ? 2 : 5"},
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelLimit": 220,
    },
    "title": {"anchor": "start", "fontSize": {"expr": f"{NARROW} ? 11 : 13"}, "offset": 10},
}
Chart = alt.Chart | alt.LayerChart


def inline_data(frame: pd.DataFrame, numbers: Iterable[str]) -> alt.InlineData:
    """Return the rows of a frame as CSV with six digits; `numbers` names the columns read as numbers."""
    text = frame.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    parse = dict.fromkeys((*numbers, "n"), "number")
    return alt.InlineData(values=text, format=alt.CsvDataFormat(type="csv", parse=parse))


def choice(column: str, values: Iterable[str], first: str | None = None) -> alt.Parameter:
    """Return a menu of the values of a column; without `first`, all of them is the first choice."""
    options = list(dict.fromkeys(values))
    everything = [] if first else [None]
    labels = ["all"] * len(everything) + options
    menu = alt.binding_select(options=everything + options, labels=labels, name=column)
    return alt.param(name=_identifier(column), bind=menu, value=first if first in options else None)


def chosen(parameter: alt.Parameter, column: str) -> str:
    """Return the expression that keeps rows of the chosen value; all, if none is chosen."""
    return f"{parameter.name} == null || datum[{json.dumps(column)}] == {parameter.name}"


def loss_colors(losses: Iterable[str]) -> alt.Scale:
    """Return the colours of training losses by their labels, the same as in figures."""
    styles = loss_styles(losses)
    return alt.Scale(domain=[loss_label(loss) for loss in styles], range=[s.color for s in styles.values()])


def zero_line() -> alt.Chart:
    """Return the line at 0 of a chart of differences."""
    return alt.Chart(alt.InlineData(values=[{}])).mark_rule(color=GREY, aria=False).encode(x=alt.datum(0))


def method_color() -> alt.Color:
    """Return the colour of each calibrator, the same as in figures, without a legend."""
    labels, colors = zip(*((method.label, PALETTE[method.color]) for method in RANKED.values()), strict=True)
    return alt.Color("Calibrator:N", scale=alt.Scale(domain=labels, range=colors), legend=None)


def to_json(chart: Chart, product: Product) -> str:
    """Return the chart as a Vega-Lite specification that fills the width it is given."""
    fitting = alt.AutoSizeParams(type="fit-x", contains="padding")
    chart = chart.properties(width="container", autosize=fitting, description=product.caption)
    made = chart.to_dict()
    made.pop("$schema")
    return json.dumps({**made, "config": CONFIG}, ensure_ascii=False, separators=(",", ":"))


def tooltip(*columns: str, **formats: str) -> list[Any]:
    """Return what hovering shows: texts as they are, and numbers by their format."""
    shown = [alt.Tooltip(field=column, type="nominal") for column in columns]
    return shown + [
        alt.Tooltip(field=name, type="quantitative", format=text) for name, text in formats.items()
    ]


def with_differences(chart: alt.Chart) -> alt.Chart:
    """Return the chart with texts for tooltips, `SIGNED`; a difference that rounds to 0 has no sign."""
    texts = {
        name: f"abs(datum.{name}) < {0.5 * 10**-DIGITS:g} ? '0' : format(datum.{name}, '+.{DIGITS}~f')"
        for name in ("Difference", "low", "high")
    }
    interval = f"isValid(datum.low) ? ({texts['low']}) + ' to ' + ({texts['high']}) : ''"
    both = dict(zip(SIGNED, (texts["Difference"], interval), strict=True))
    return chart.transform_calculate(**both)


def _identifier(column: str) -> str:
    return re.sub(r"\W+", "_", column.lower())
