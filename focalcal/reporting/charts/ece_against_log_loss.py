"""What a low calibration error costs: ECE against log-loss of the calibrators."""

import altair as alt
import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.charts import grammar
from focalcal.reporting.products import chart
from focalcal.reporting.records.measurements import LEADING, SECOND, SETTING, rows_of_fits, shown_fits
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.arena import BASELINE, arena_criterion
from focalcal.training.appearance import loss_label, loss_order


@chart(
    section="scores",
    order=20,
    heading="ECE against log-loss",
    caption="Mean difference from temperature scaling over the chosen networks: log-loss to the right, ECE "
    "upwards. Down and left is better than TS by both. A constant confidence has a low ECE and a high "
    "log-loss, so a low ECE alone is no merit. Both scales are compressed.",
    inputs=("metrics",),
    table="scores",
)
def ece_against_log_loss(sources: Sources) -> alt.LayerChart | alt.FacetChart | None:
    """Return one point per calibrator; None if no run has temperature scaling."""
    fits = shown_fits(sources.metrics, arena_criterion(sources.metrics, sources.criterion))
    first, second = (_differences(sources.metrics, fits, metric) for metric in (LEADING, SECOND))
    if first is None or second is None:
        return None
    frame = first.merge(second)
    losses = sorted(set(frame["loss"]), key=loss_order)
    frame["loss"], frame["method"] = frame["loss"].map(loss_label), frame["method"].map(_method_label)
    frame = frame.rename(columns={"dataset": "Dataset", "loss": "Training loss", "method": "Calibrator"})
    dataset = grammar.choice("Dataset", frame["Dataset"])
    loss = grammar.choice("Training loss", map(loss_label, losses))
    scale = {"x": alt.Scale(type="symlog", constant=0.005), "y": alt.Scale(type="symlog", constant=0.5)}
    base = (
        alt.Chart(grammar.inline_data(frame.drop(columns="model"), ("Log-loss", "ECE")))
        .transform_filter(grammar.chosen(dataset, "Dataset"))
        .transform_filter(grammar.chosen(loss, "Training loss"))
        .transform_aggregate(x="mean(Log-loss)", y="mean(ECE)", groupby=["Calibrator"])
        .encode(
            x=alt.X("x:Q", title="Log-loss: difference from TS (nats)", scale=scale["x"]),
            y=alt.Y("y:Q", title="ECE: difference from TS (points)", scale=scale["y"]),
            tooltip=grammar.tooltip("Calibrator", x="+.4~f", y="+.4~f"),
        )
    )
    points = base.mark_point(size=70, filled=True, opacity=1).encode(
        color=alt.Color(
            "Calibrator:N",
            scale=grammar.method_colors(),
            legend=None,
        )
    )
    names = base.mark_text(align="left", dx=8, fontSize=12).encode(text="Calibrator:N")
    lines = (
        alt.Chart(alt.InlineData(values=[{}])).mark_rule(color=grammar.GREY).encode(y=alt.datum(0)),
        grammar.zero_line(),
    )
    return alt.layer(*lines, points, names).add_params(dataset, loss).properties(height=420)


def _differences(metrics: pd.DataFrame, fits: list[tuple[str, str]], metric: str) -> pd.DataFrame | None:
    """Return each calibrator minus TS by one metric, one row per setting; None without TS."""
    rows = rows_of_fits(metrics, fits, metric)
    means = rows.groupby([*SETTING, "method"], as_index=False)["value"].mean()
    baseline = means[means["method"] == BASELINE].drop(columns="method")
    if baseline.empty:
        return None
    both = means.merge(baseline, on=SETTING, suffixes=("", "_ts"))
    name = METRICS[metric].label
    return both[[*SETTING, "method"]].assign(
        **{name: (both["value"] - both["value_ts"]) * METRICS[metric].factor}
    )


def _method_label(method: str) -> str:
    return METHODS[method].label
