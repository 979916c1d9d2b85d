"""Each calibrator against temperature scaling, network by network."""

import altair as alt
import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.charts import grammar
from focalcal.reporting.products import chart
from focalcal.reporting.records.measurements import SETTING
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.comparisons import HEADLINE
from focalcal.reporting.statistics.effects import sample_comparisons
from focalcal.reporting.text import MINUS, natural_order
from focalcal.training.appearance import loss_label, loss_order


@chart(
    section="answer",
    order=10,
    heading="Does FTS beat TS? Network by network",
    caption="Difference from temperature scaling on test data, one row per network and training loss. Left "
    "of 0 the calibrator is better than TS; log-loss in nats, ECE in points. Bars are 95 % bootstrap "
    "intervals over test samples; a filled point has an interval without 0. Points are means over n seeds.",
    inputs=("runs", "diagnostics"),
    unfolded=True,
    table="when_fts_pays",
)
def difference_by_network(sources: Sources) -> alt.LayerChart | alt.FacetChart | None:
    """Return a forest plot of differences from TS, to be filtered; None if no run has FTS and TS."""
    first, second = HEADLINE
    rows = sample_comparisons(sources.diagnostics)
    rows = rows[(rows["against"] == second) & rows["method"].isin(METHODS)]
    if first not in set(rows["method"]):
        return None
    losses = sorted(set(rows["loss"]), key=loss_order)
    frame = _difference_frame(rows)
    numbers = ("Difference", "low", "high")
    calibrator = grammar.choice("Calibrator", frame["Calibrator"], METHODS[first].label)
    measured = grammar.choice("Measured by", frame["Measured by"], METRICS["nll"].heading)
    criteria = list(dict.fromkeys(frame["Chosen by"]))
    by_log_loss = METRICS["nll"].name
    selected = grammar.choice("Chosen by", criteria, by_log_loss if by_log_loss in criteria else criteria[0])
    dataset = grammar.choice("Dataset", frame["Dataset"])
    loss = grammar.choice("Training loss", map(loss_label, losses))
    choices = (calibrator, measured, selected, dataset, loss)
    columns = ("Calibrator", "Measured by", "Chosen by", "Dataset", "Training loss")
    base = alt.Chart(grammar.inline_data(frame, numbers))
    for parameter, column in zip(choices, columns, strict=True):
        base = base.transform_filter(grammar.chosen(parameter, column))
    base = base.encode(
        y=alt.Y("Network:N", sort=None, title=None),
        stroke=alt.Stroke("Training loss:N", scale=grammar.loss_colors(losses), legend=None),
        tooltip=grammar.tooltip("Network", *columns[:3], "n", Difference="+.4~f", low="+.4~f", high="+.4~f"),
    )
    title = (
        f"{calibrator.name} + ' {MINUS} {METHODS[second].label}, ' + {measured.name} + ', chosen by ' + "
        f"{selected.name}"
    )
    layers = (
        grammar.zero_line(),
        base.mark_rule(strokeWidth=2).encode(
            x=alt.X("low:Q", title=f"Difference from {METHODS[second].label}; left of 0 is better"),
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
        .add_params(*choices)
        .properties(height=alt.Step(grammar.ROW_PIXELS), title=alt.Title(alt.expr(title)))
    )


def _difference_frame(rows: pd.DataFrame) -> pd.DataFrame:
    """Return means over seeds in the units that people see, settings and calibrators in the suite's order."""
    keys = [*SETTING, "method", "criterion", "metric"]
    groups = rows.groupby(keys)[["difference", "low", "high"]]
    frame = groups.mean().assign(n=groups.size()).reset_index()
    orders = {
        **dict.fromkeys(("dataset", "model"), lambda name: tuple(natural_order(name))),
        "loss": loss_order,
        "method": list(METHODS).index,
        "criterion": list(METRICS).index,
    }
    frame = frame.sort_values(
        ["dataset", "model", "loss", "method", "criterion"],
        key=lambda column: column.map(orders[column.name]),
    )
    factors = frame["metric"].map(lambda name: METRICS[name].factor)
    labels = frame["loss"].map(loss_label)
    return pd.DataFrame(
        {
            "Dataset": frame["dataset"],
            "Network": labels + " · " + frame["model"] + " · " + frame["dataset"],
            "Training loss": labels,
            "Calibrator": frame["method"].map(lambda name: METHODS[name].label),
            "Measured by": frame["metric"].map(lambda name: METRICS[name].heading),
            "Chosen by": frame["criterion"].map(lambda name: METRICS[name].name),
            "n": frame["n"],
            "Difference": frame["difference"] * factors,
            "low": frame["low"] * factors,
            "high": frame["high"] * factors,
        }
    )
