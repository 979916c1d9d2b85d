"""The debiased calibration error of each run, with its interval over test samples."""

import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.products import table
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.effects import root_interval
from focalcal.reporting.tables.columns import DATASET_MODEL, LOSS, interval_text, number_column, scaled_column
from focalcal.reporting.tables.table import Column, Table


@table(
    section="scores",
    order=60,
    heading="Is a model calibrated?",
    caption="Debiased calibration error of the confidence of each run, with an interval over test samples.",
    inputs=("runs", "diagnostics"),
    settings=("confidence", "criterion"),
)
def debiased(sources: Sources) -> Table | None:
    """Return one row per run and shown calibrator."""
    records = sources.diagnostics
    rows = [
        {
            **{key: str(record["run"][key]) for key in ("dataset", "model", "loss", "seed")},
            "method": METHODS[method].label,
            "samples_count": record["samples"],
            "debiased_value": value,
            "interval_low": low,
            "interval_high": high,
            "outcome": "miscalibrated" if low > 0 else "no error shown",
        }
        for record in records
        for method, (value, square, error) in record["debiased_ece"].items()
        for low, high in [root_interval(square, error, sources.confidence)]
    ]
    if not rows:
        return None
    metric = METRICS["debiased_ece"]
    unsigned = interval_text(metric, "interval_low", "interval_high", signed=False)
    criterion = METRICS[min(record["criterion"] for record in records)].name
    return Table(
        title=f"{metric.label}, fitted by validation {criterion}",
        frame=pd.DataFrame(rows),
        columns=(
            *DATASET_MODEL,
            LOSS,
            Column("Seed", "seed", merge=True),
            Column("Calibrator", "method"),
            number_column("samples_count", "Test samples"),
            scaled_column("debiased_value", metric.heading, metric),
            Column(f"{sources.level} interval", unsigned, "interval_low"),
            Column("Conclusion", "outcome"),
        ),
        group=("dataset", "model", "loss"),
        notes=(
            (
                "Root of the mean squared gap of accuracy and confidence over bins of equal mass, less the "
                "square that chance leads to expect (Kumar et al. 2019). 0 where nothing is left."
            ),
            "Calibrators without a fit by that criterion are shown with their first one.",
            "Intervals are not corrected for multiple comparisons.",
        ),
    )
