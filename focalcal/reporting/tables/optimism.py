"""Selection optimism: scores of fits on the validation data they were fitted to, and on test data."""

import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.products import table
from focalcal.reporting.records.measurements import RUN
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.tables.columns import number_column, scaled_column
from focalcal.reporting.tables.table import Column, Table
from focalcal.reporting.text import MINUS

OPTIMISM_NOTE = (
    "A positive difference means that the fit looked better on validation data than it is. Binned "
    "calibration errors are also larger on fewer samples, which works in the opposite direction."
)


@table(
    section="scores",
    order=71,
    heading="Selection optimism (validation vs test)",
    caption="The score of each fit on the validation data that it was fitted to, and on test data.",
    inputs=("metrics",),
)
def optimism(sources: Sources) -> Table | None:
    """Return validation score, test score and their difference by calibrator and criterion."""
    runs = optimism_by_run(sources.metrics)
    if runs.empty:
        return None
    frame = runs.groupby(["method", "criterion"], as_index=False).agg(
        runs_count=("seed", "size"),
        validation_mean=("validation", "mean"),
        test_mean=("test", "mean"),
        optimism_mean=("optimism", "mean"),
    )
    orders = {"method": list(METHODS).index, "criterion": list(METRICS).index}
    frame = frame.sort_values(list(orders), key=lambda column: column.map(orders[column.name]))
    return Table(
        title="Scores of fits on validation and on test data, mean over runs",
        frame=frame.assign(
            _metric=frame["criterion"],
            method=[METHODS[method].label for method in frame["method"]],
            criterion=[METRICS[criterion].heading for criterion in frame["criterion"]],
        ),
        columns=(
            Column("Calibrator", "method"),
            Column("Fitted by", "criterion"),
            number_column("runs_count", "Runs"),
            scaled_column("validation_mean", "Validation"),
            scaled_column("test_mean", "Test"),
            scaled_column("optimism_mean", f"Test {MINUS} validation", signed=True),
        ),
        notes=(OPTIMISM_NOTE,),
    )


def optimism_by_run(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the score of each fit on the validation data it was fitted on, and on test data.

    One row per run, method and criterion: the score is the criterion's own metric, and optimism is test minus
    validation (positive: the fit looked better than it is).
    """
    rows = frame[(frame["criterion"] == frame["metric"]) & frame["split"].isin(["val", "test"])]
    scores = rows.pivot_table(index=[*RUN, "method", "criterion"], columns="split", values="value")
    scores = scores.reindex(columns=["val", "test"]).dropna().rename(columns={"val": "validation"})
    return scores.assign(optimism=scores["test"] - scores["validation"]).reset_index()
