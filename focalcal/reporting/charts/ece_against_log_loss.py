"""What a low calibration error costs: ECE against log-loss of the calibrators."""

import altair as alt
import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.charts import grammar
from focalcal.reporting.products import chart
from focalcal.reporting.records.measurements import FIT, LEADING, SECOND, SETTING, shown_fits
from focalcal.reporting.tables.arena import BASELINE
from focalcal.training.appearance import loss_label, loss_order


@chart(
    of="scores",
    order=20,
    heading="ECE against log-loss",
    caption="Mean difference from temperature scaling over the chosen networks: log-loss to the right, ECE "
    "upwards. Down and left is better than TS by both. A constant confidence has a low ECE and a high "
    "log-loss, so low ECE alone proves nothing. Both scales are compressed.",
)
def ece_against_log_loss(scores: pd.DataFrame) -> alt.LayerChart | alt.FacetChart | None:
    """Return one point per calibrator; None if no run has temperature scaling."""
    criteria = [name for name in METRICS if name in set(scores["criterion"])]
    fits = shown_fits(scores, criteria[0] if criteria else "")
    frame = _differences(scores[pd.MultiIndex.from_frame(scores[FIT]).isin(fits)])
    if frame.empty:
        return None
    losses = sorted(set(frame["loss"]), key=loss_order)
    frame["loss"] = frame["loss"].map(loss_label)
    frame["method"] = frame["method"].map(lambda name: METHODS[name].label)
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
    points = base.mark_point(size=70, filled=True, opacity=1).encode(color=grammar.method_color())
    names = base.mark_text(align="left", dx=8, fontSize=12).encode(text="Calibrator:N")
    lines = (
        alt.Chart(alt.InlineData(values=[{}])).mark_rule(color=grammar.GREY).encode(y=alt.datum(0)),
        grammar.zero_line(),
    )
    return alt.layer(*lines, points, names).add_params(dataset, loss).properties(height=420)


def _differences(scores: pd.DataFrame) -> pd.DataFrame:
    """Return each calibrator minus TS by both metrics, one row per network."""
    names = [f"{metric}_mean" for metric in (LEADING, SECOND)]
    baseline = scores[scores["method"] == BASELINE][[*SETTING, *names]]
    both = scores.merge(baseline, on=SETTING, suffixes=("", "_ts")).dropna(subset=names)
    gaps = {
        METRICS[metric].label: (both[name] - both[f"{name}_ts"]) * METRICS[metric].factor
        for metric, name in zip((LEADING, SECOND), names, strict=True)
    }
    return both[[*SETTING, "method"]].assign(**gaps)
