"""Every calibrator against temperature scaling, network by network."""

from focalcal.calibration.catalogue import METRICS, RANKED
from focalcal.reporting.products import table
from focalcal.reporting.records.measurements import LEADING
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.effects import HEADLINE, NETWORK
from focalcal.reporting.tables.columns import difference_columns, number_column, p_text
from focalcal.reporting.tables.table import Column, Table
from focalcal.reporting.tables.when_fts_pays import RULE_NOTES
from focalcal.training.appearance import loss_label


@table(
    section="answer",
    order=25,
    heading="Network by network",
    caption="Each calibrator against temperature scaling on test data, fitted by log-loss or by the metric "
    "that it is measured by.",
    inputs=("effects",),
    settings=("confidence", "criterion"),
)
def networks(sources: Sources) -> Table | None:
    """Return one row per network, calibrator, metric and criterion; None if no run has FTS and TS."""
    effects = sources.effects
    rows = effects[(effects["scope"] == NETWORK) & (effects["against"] == HEADLINE[1])]
    if HEADLINE[0] not in set(rows["method"]):
        return None
    fitted_by = set(rows["criterion"])
    leading = LEADING if LEADING in fitted_by else sources.criterion
    rows = rows[(rows["criterion"] == leading) | (rows["criterion"] == rows["metric"])]
    names = ["origin", "dataset", "model", "loss", "method", "metric", "criterion", "runs", "estimate"]
    frame = rows[[*names, "low", "high", "adjusted_p", "verdict"]]
    frame = frame.assign(
        loss_name=frame["loss"].map(loss_label),
        method_name=frame["method"].map(lambda name: RANKED[name].label),
        metric_name=frame["metric"].map(lambda name: METRICS[name].heading),
        criterion_name=frame["criterion"].map(lambda name: METRICS[name].name),
        _metric=frame["metric"],
    )
    return Table(
        title="Differences from TS on test data, network by network",
        frame=frame,
        columns=(
            Column("Origin", "origin", merge=True),
            Column("Measured by", "metric_name", merge=True),
            Column("Fitted by", "criterion_name", merge=True),
            Column("Dataset", "dataset"),
            Column("Model", "model"),
            Column("Training loss", "loss_name"),
            Column("Calibrator", "method_name"),
            number_column("runs", "Runs"),
            *difference_columns("estimate", "low", "Difference from TS", sources.level),
            number_column("adjusted_p", "p, corrected", p_text),
            Column("Verdict", "verdict"),
        ),
        group=("origin", "metric", "criterion"),
        notes=RULE_NOTES,
    )
