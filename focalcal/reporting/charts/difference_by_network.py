"""Each calibrator against temperature scaling, network by network."""

import altair as alt
import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.charts import grammar
from focalcal.reporting.products import chart
from focalcal.reporting.statistics.effects import HEADLINE
from focalcal.reporting.text import MINUS
from focalcal.training.appearance import loss_label, loss_order

CHOICES = ("Calibrator", "Measured by", "Fitted by", "Dataset", "Training loss")


@chart(
    of="networks",
    order=10,
    heading="Does FTS beat TS? Network by network",
    caption="Difference from temperature scaling on test data, one row per network and training loss. Left "
    "of 0 the calibrator is better than TS; log-loss in nats, ECE in points. Bars are {level} intervals, "
    "corrected for the number of networks; a filled point has an interval without 0. Points are means over "
    "n seeds.",
)
def difference_by_network(frame: pd.DataFrame) -> alt.LayerChart | alt.FacetChart:
    """Return a forest plot of differences from TS, to be filtered."""
    first, second = HEADLINE
    losses = sorted(set(frame["loss"]), key=loss_order)
    data = _shown(frame)
    names = [METRICS[name].name for name in METRICS]
    criteria = sorted(set(data["Fitted by"]), key=names.index)
    parameters = (
        grammar.choice("Calibrator", data["Calibrator"], METHODS[first].label),
        grammar.choice("Measured by", data["Measured by"], METRICS["nll"].heading),
        grammar.choice("Fitted by", criteria, criteria[0]),
        grammar.choice("Dataset", data["Dataset"]),
        grammar.choice("Training loss", map(loss_label, losses)),
    )
    drawn = alt.Chart(grammar.inline_data(data, ("Difference", "low", "high")))
    base = grammar.with_differences(drawn)
    for parameter, column in zip(parameters, CHOICES, strict=True):
        base = base.transform_filter(grammar.chosen(parameter, column))
    base = base.encode(
        y=alt.Y("Network:N", sort=None, title=None),
        stroke=alt.Stroke("Training loss:N", scale=grammar.loss_colors(losses), legend=None),
        tooltip=grammar.tooltip("Network", *CHOICES[:3], "Verdict", "n", *grammar.SIGNED),
    )
    calibrator, measured, fitted = (parameter.name for parameter in parameters[:3])
    title = f"{calibrator} + ' {MINUS} {METHODS[second].label}, ' + {measured} + ', fitted by ' + {fitted}"
    layers = (
        grammar.zero_line(),
        base.mark_rule(strokeWidth=2).encode(
            x=alt.X("low:Q", title=f"Difference from {METHODS[second].label}; left is better"),
            x2="high:Q",
        ),
        base.mark_point(size=60, opacity=1, strokeWidth=2).encode(
            x="Difference:Q",
            fill=alt.Fill("Training loss:N", scale=grammar.loss_colors(losses), legend=None),
            fillOpacity=alt.condition("datum.low > 0 || datum.high < 0", alt.value(1), alt.value(0)),
        ),
    )
    return (
        alt.layer(*layers)
        .add_params(*parameters)
        .properties(height=alt.Step(grammar.ROW_PIXELS), title=alt.Title(alt.expr(title)))
    )


def _shown(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the differences in the words and units that people see."""
    factors = frame["metric"].map(lambda name: METRICS[name].factor)
    return pd.DataFrame(
        {
            "Dataset": frame["dataset"],
            "Network": frame["loss_name"] + " · " + frame["model"] + " · " + frame["dataset"],
            "Training loss": frame["loss_name"],
            "Calibrator": frame["method_name"],
            "Measured by": frame["metric_name"],
            "Fitted by": frame["criterion_name"],
            "n": frame["runs"],
            "Verdict": frame["verdict"],
            "Difference": frame["estimate"] * factors,
            "low": frame["low"] * factors,
            "high": frame["high"] * factors,
        }
    )
