"""All calibrators against temperature scaling, over the networks of one origin."""

import altair as alt
import pandas as pd

from focalcal.calibration.catalogue import METRICS
from focalcal.reporting.charts import grammar
from focalcal.reporting.products import chart
from focalcal.reporting.records.measurements import LEADING, SECOND


@chart(
    of="arena",
    order=35,
    heading="All calibrators, best first",
    caption="Mean difference from temperature scaling over networks, calibrators in the order of their mean "
    "rank by log-loss. Left of 0 a calibrator is better than TS; log-loss in nats, ECE in points. Bars are "
    "{level} intervals for these networks, corrected for the number of calibrators.",
    unfolded=True,
)
def calibrators_ranked(frame: pd.DataFrame) -> alt.LayerChart | alt.FacetChart:
    """Return the calibrators' differences from TS by origin and metric."""
    # A constant confidence, far above all others, would flatten them; the table has it.
    frame = frame[frame["method"] != "constant"]
    data = pd.concat([_differences(frame, LEADING, "rank_mean"), _differences(frame, SECOND, "ece_rank")])
    origin = grammar.choice("Origin", data["Origin"], data["Origin"].iloc[0])
    measured = grammar.choice("Measured by", data["Measured by"], METRICS[LEADING].heading)
    drawn = alt.Chart(grammar.inline_data(data, ("Difference", "low", "high", "Mean rank", "Mean")))
    base = (
        grammar.with_differences(drawn)
        .transform_filter(grammar.chosen(origin, "Origin"))
        .transform_filter(grammar.chosen(measured, "Measured by"))
        .encode(
            y=alt.Y("Calibrator:N", sort=None, title=None),
            color=grammar.method_color(),
            tooltip=grammar.tooltip(
                "Calibrator",
                "Measured by",
                *grammar.SIGNED,
                **{"Mean rank": ".2f"},
                Mean=".4~f",
            ),
        )
    )
    title = f"{measured.name} + ': difference from TS, ' + {origin.name}"
    scale = alt.Scale(type="symlog", constant=0.01)
    layers = (
        grammar.zero_line(),
        # First, since it has all calibrators in their order: TS has no interval.
        base.mark_point(size=70, filled=True, opacity=1).encode(x="Difference:Q"),
        base.mark_rule(strokeWidth=2).encode(
            x=alt.X("low:Q", title="left is better; the scale is compressed away from 0", scale=scale),
            x2="high:Q",
        ),
    )
    return (
        alt.layer(*layers)
        .add_params(origin, measured)
        .properties(height=alt.Step(grammar.ROW_PIXELS), title=alt.Title(alt.expr(title)))
    )


def _differences(frame: pd.DataFrame, metric: str, rank: str) -> pd.DataFrame:
    """Return the differences by one metric in the units that people see; that of TS is 0."""
    numbers = frame[[f"{metric}_{name}" for name in ("mean", "difference", "low", "high")]]
    numbers = (
        numbers.astype(float).set_axis(["Mean", "Difference", "low", "high"], axis=1) * METRICS[metric].factor
    )
    return pd.DataFrame(
        {
            "Origin": frame["origin"],
            "Calibrator": frame["name"],
            "Measured by": METRICS[metric].heading,
            "Mean rank": frame[rank],
            **numbers.fillna({"Difference": 0.0}),
        }
    )
