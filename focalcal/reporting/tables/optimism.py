"""Selection optimism: scores of chosen fits on the data they were chosen on, and on test data."""

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.products import table
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.comparisons import mean_optimism, selection_optimism
from focalcal.reporting.tables.cells import number_column, value_cell
from focalcal.reporting.tables.table import Column, Table, frame_of
from focalcal.reporting.text import MINUS, format_number

OPTIMISM_NOTE = (
    "A positive difference means that the fit looked better on validation data than it is. Binned "
    "calibration errors are also larger on fewer samples, which works in the opposite direction."
)


@table(
    page="calibration",
    order=74,
    heading="Selection optimism (validation vs test)",
    caption="The score of each chosen fit on the validation data it was chosen on, and on test data.",
    inputs=("metrics",),
)
def optimism(sources: Sources) -> Table | None:
    """Return validation score, test score and their difference by calibrator and criterion."""
    rows = []
    for found in mean_optimism(selection_optimism(sources.metrics)).itertuples():
        metric = METRICS[found.criterion]
        row = {
            "method": METHODS[found.method].label,
            "criterion": metric.heading,
            **value_cell("runs", "count", found.runs, str(found.runs)),
        }
        for name in ("validation", "test", "optimism"):
            value = getattr(found, name)
            text = format_number(value * metric.factor, metric.decimals + 1, signed=name == "optimism")
            row |= value_cell(name, "mean", value, text)
        rows.append(row)
    if not rows:
        return None
    return Table(
        title="Scores of chosen fits on validation and on test data, mean over runs",
        frame=frame_of(rows),
        columns=(
            Column("Calibrator", "method"),
            Column("Chosen by", "criterion"),
            number_column("runs", "Runs", "count"),
            number_column("validation", "Validation"),
            number_column("test", "Test"),
            number_column("optimism", f"Test {MINUS} validation"),
        ),
        notes=(OPTIMISM_NOTE,),
    )
