"""Every metric of every calibrator, to be filtered."""

import json

import altair as alt
import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.charts import grammar
from focalcal.reporting.products import chart
from focalcal.reporting.records.measurements import SETTING
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.tables.columns import criterion_name
from focalcal.training.appearance import loss_label, loss_order


@chart(
    section="scores",
    order=10,
    heading="Explore every metric",
    caption="Test score of each calibrator, one point per dataset, model, training loss and criterion, mean "
    "over n seeds. The table of all scores follows the choices.",
    inputs=("metrics",),
    table="scores",
)
def score_explorer(sources: Sources) -> alt.Chart | None:
    """Return points of calibrators against the chosen metric; None without scores."""
    summary = sources.scores.query("metric in @METRICS")
    if summary.empty:
        return None
    losses = sorted(set(summary.index.get_level_values("loss")), key=loss_order)
    frame = _explorer_frame(summary)
    metric = grammar.choice(
        "Metric",
        (METRICS[name].heading for name in METRICS if METRICS[name].heading in frame),
        METRICS["nll"].heading,
    )
    dataset = grammar.choice("Dataset", frame["Dataset"])
    loss = grammar.choice("Training loss", map(loss_label, losses))
    calibrator = grammar.choice("Calibrator", frame["Calibrator"])
    criteria = [criterion_name(name) for name in METRICS if criterion_name(name) in set(frame["Chosen by"])]
    selected = grammar.choice("Chosen by", criteria)
    filters = {"Dataset": dataset, "Training loss": loss, "Calibrator": calibrator}
    made = alt.Chart(grammar.inline_data(frame, ()))
    for column, parameter in filters.items():
        made = made.transform_filter(grammar.chosen(parameter, column))
    return (
        made.transform_filter(
            f"{grammar.chosen(selected, 'Chosen by')} || datum[{json.dumps('Chosen by')}] == ''"
        )
        .transform_calculate(Score=f"toNumber(datum[{metric.name}])")
        .transform_filter("isValid(datum.Score)")
        .mark_point(size=45, opacity=0.85, strokeWidth=1.6)
        .encode(
            x=alt.X("Score:Q", title="Test score", scale=alt.Scale(zero=False)),
            y=alt.Y("Calibrator:N", sort=None, title=None),
            color=alt.Color("Training loss:N", scale=grammar.loss_colors(losses), title=None),
            tooltip=grammar.tooltip(
                "Dataset", "Model", "Training loss", "Calibrator", "Chosen by", "n", Score=".4~f"
            ),
        )
        .add_params(metric, selected, *filters.values())
        .properties(height=alt.Step(grammar.ROW_PIXELS), title=alt.Title(alt.expr(metric.name)))
    )


def _explorer_frame(summary: pd.DataFrame) -> pd.DataFrame:
    """Return one row per setting, calibrator and criterion, and one column per metric as people see it."""
    keys = [*SETTING, "method", "criterion"]
    wide = summary.reset_index().pivot_table("mean", index=keys, columns="metric")
    wide = wide[[name for name in METRICS if name in wide.columns]]
    wide = wide.mul([METRICS[name].factor for name in wide.columns], axis="columns")
    wide.columns = [METRICS[name].heading for name in wide.columns]
    wide.insert(0, "n", summary["seeds"].groupby(level=keys).max())
    frame = wide.reset_index()
    orders = {"loss": loss_order, "method": list(METHODS).index}
    frame = frame.sort_values(
        ["method", "dataset", "model", "loss"],
        key=lambda column: column.map(orders[column.name]) if column.name in orders else column,
    )
    frame["loss"] = frame["loss"].map(loss_label)
    frame["method"] = frame["method"].map(lambda name: METHODS[name].label)
    frame["criterion"] = frame["criterion"].map(criterion_name)
    names = {"dataset": "Dataset", "model": "Model", "loss": "Training loss", "method": "Calibrator"}
    return frame.rename(columns={**names, "criterion": "Chosen by"})
