"""Every metric of every calibrator, to be filtered."""

import json

import altair as alt
import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.charts import grammar
from focalcal.reporting.products import chart
from focalcal.reporting.tables.columns import criterion_name
from focalcal.training.appearance import loss_label, loss_order


@chart(
    of="scores",
    order=10,
    heading="Explore every metric",
    caption="Test score of each calibrator, one point per dataset, model, training loss and criterion, mean "
    "over n seeds. The table of all scores follows the choices.",
)
def score_explorer(scores: pd.DataFrame) -> alt.Chart:
    """Return points of calibrators against the chosen metric."""
    losses = sorted(set(scores["loss"]), key=loss_order)
    frame = _explorer_frame(scores)
    metric = grammar.choice(
        "Metric",
        (METRICS[name].heading for name in METRICS if METRICS[name].heading in frame),
        METRICS["nll"].heading,
    )
    dataset = grammar.choice("Dataset", frame["Dataset"])
    loss = grammar.choice("Training loss", map(loss_label, losses))
    calibrator = grammar.choice("Calibrator", frame["Calibrator"])
    criteria = [criterion_name(name) for name in METRICS if criterion_name(name) in set(frame["Fitted by"])]
    selected = grammar.choice("Fitted by", criteria)
    filters = {"Dataset": dataset, "Training loss": loss, "Calibrator": calibrator}
    made = alt.Chart(grammar.inline_data(frame, ()))
    for column, parameter in filters.items():
        made = made.transform_filter(grammar.chosen(parameter, column))
    return (
        made.transform_filter(
            f"{grammar.chosen(selected, 'Fitted by')} || datum[{json.dumps('Fitted by')}] == ''"
        )
        .transform_calculate(Score=f"toNumber(datum[{metric.name}])")
        .transform_filter("isValid(datum.Score)")
        .mark_point(size=45, opacity=0.85, strokeWidth=1.6)
        .encode(
            x=alt.X("Score:Q", title="Test score", scale=alt.Scale(zero=False)),
            y=alt.Y("Calibrator:N", sort=None, title=None),
            color=alt.Color("Training loss:N", scale=grammar.loss_colors(losses), title=None),
            tooltip=grammar.tooltip(
                "Dataset", "Model", "Training loss", "Calibrator", "Fitted by", "n", Score=".4~f"
            ),
        )
        .add_params(metric, selected, *filters.values())
        .properties(height=alt.Step(grammar.ROW_PIXELS), title=alt.Title(alt.expr(metric.name)))
    )


def _explorer_frame(scores: pd.DataFrame) -> pd.DataFrame:
    """Return one row per network, calibrator and criterion, and one column per metric as people see it."""
    orders = {"loss": loss_order, "method": list(METHODS).index}
    scores = scores.sort_values(
        ["method", "dataset", "model", "loss"],
        key=lambda column: column.map(orders[column.name]) if column.name in orders else column,
    )
    known = [name for name in METRICS if scores[f"{name}_mean"].notna().any()]
    return pd.DataFrame(
        {
            "Dataset": scores["dataset"],
            "Model": scores["model"],
            "Training loss": scores["loss"].map(loss_label),
            "Calibrator": scores["method"].map(lambda name: METHODS[name].label),
            "Fitted by": scores["criterion"].map(criterion_name),
            "n": scores[[f"{name}_seeds" for name in METRICS]].max(axis=1),
            **{METRICS[name].heading: scores[f"{name}_mean"] * METRICS[name].factor for name in known},
        }
    )
