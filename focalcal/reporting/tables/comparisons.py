"""Calibrators compared in pairs: over runs, and over the test samples of each run."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS, Metric
from focalcal.reporting.products import table
from focalcal.reporting.records.measurements import chosen_fits
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.comparisons import HEADLINE, compare_by, compare_methods, compared_pairs
from focalcal.reporting.statistics.tests import PairedComparison, adjust
from focalcal.reporting.statistics.wording import verdict
from focalcal.reporting.tables.cells import DATASET_MODEL, Cells, cell, number_column, value_cell
from focalcal.reporting.tables.table import Column, Table, frame_of
from focalcal.reporting.text import MINUS, format_number

COMPARISON_NOTES = (
    (
        "The difference is the first calibrator minus the second: the mean over settings (dataset, model, "
        "loss) of the mean over seeds. A negative difference favours the first."
    ),
    (
        "Interval: bootstrap over the seeds of each setting; none if a setting has one seed. It describes "
        "new seeds in the same settings; with few seeds it is too short."
    ),
    (
        "Runs on one dataset share its validation and test samples, so they are less independent than the "
        "test assumes."
    ),
    "Holm's correction covers the rows between two rules.",
    "'too few runs': even if all runs agreed, p could not be below 0.05.",
)
SAMPLE_NOTES = (
    (
        "Basic bootstrap over test samples, the same samples for both calibrators; the model and its "
        "validation data stay fixed."
    ),
    (
        "Intervals are not corrected for multiple comparisons: about one in 20 true ties will appear "
        "significant."
    ),
)


@table(
    page="calibration",
    order=10,
    heading="Focal temperature scaling against temperature scaling",
    caption="Paired over runs: the same model, calibrated in two ways. A negative difference favours the "
    "first.",
    inputs=("metrics",),
)
def comparisons(sources: Sources) -> Table | None:
    """Return paired comparisons over runs: calibrators over all runs, then FTS against TS part by part.

    Three families, each Holm-corrected by itself: pairs of calibrators, datasets, losses. None if no run has
    two calibrators.
    """
    metric, frame = METRICS[sources.metric], sources.metrics
    frame = frame[(frame["metric"] == metric.id) & (frame["split"] == "test")]
    fits = dict(chosen_fits(frame, sources.criterion))
    families = [_pairs_family(frame, fits, metric.id)]
    if all(method in fits for method in HEADLINE):
        sides = [(method, fits[method]) for method in HEADLINE]
        for column in ("dataset", "loss"):
            found = compare_by(frame, column, *sides, metric.id)
            families.append([(*HEADLINE, f"{column} {value}", compared) for value, compared in found.items()])
    rows = [
        _comparison_row(*entry, metric) | {"_family": number}
        for number, family in enumerate(families)
        for entry in family
    ]
    if not rows:
        return None
    unit = metric.difference_unit
    return Table(
        title=(
            f"Paired differences of test {metric.inline}, fits chosen by validation "
            f"{METRICS[sources.criterion].name}"
        ),
        frame=frame_of(rows),
        columns=(
            Column("Comparison", "pair"),
            Column("Runs of", "scope"),
            number_column("runs", "Runs", "count"),
            number_column("settings", "Settings", "count"),
            number_column("difference", f"Difference{unit}"),
            number_column("interval", f"95 % interval{unit}", "low"),
            number_column("outcomes", "Wins / ties / losses", "wins"),
            number_column("p", "p (Wilcoxon)", "value"),
            number_column("holm", "p (Holm)", "value"),
            Column("What follows", "verdict"),
        ),
        group=lambda row: row["_family"],
        notes=COMPARISON_NOTES,
    )


@table(
    page="calibration",
    order=70,
    heading="The same comparison over test samples",
    caption="How far the difference of one run would move with another test set of the same size.",
    inputs=("runs", "diagnostics"),
)
def samples(sources: Sources) -> Table | None:
    """Return FTS against TS on the test samples of each run; None if no run has both."""
    records = sources.diagnostics
    rows = [_sample_row(record, found) for record in records for found in record["comparisons"]]
    if not rows:
        return None
    first, second = (METHODS[method].label for method in HEADLINE)
    criterion = min(record["criterion"] for record in records)
    return Table(
        title=(
            f"{first} against {second} on the test samples of each run, chosen by validation "
            f"{METRICS[criterion].name}"
        ),
        frame=frame_of(rows),
        columns=(
            *DATASET_MODEL,
            Column("Loss", "loss"),
            Column("Seed", "seed"),
            Column("Metric", "metric"),
            number_column("samples", "Test samples", "count"),
            number_column(HEADLINE[1], second, "value"),
            number_column(HEADLINE[0], first, "value"),
            number_column("difference", f"{first} {MINUS} {second}", "value"),
            number_column("interval", "95 % interval", "low"),
            Column("What follows", "outcome"),
        ),
        notes=SAMPLE_NOTES,
    )


def _pairs_family(
    frame: pd.DataFrame, fits: Mapping[str, str], metric: str
) -> list[tuple[str, str, str, PairedComparison]]:
    """Return the comparison of each pair of calibrators over all runs, corrected together."""
    found = {}
    for first, second in compared_pairs():
        # Fits chosen by two criteria would show the difference of the criteria, not of the calibrators.
        if {first, second} <= fits.keys() and len({fits[first], fits[second]} - {""}) < 2:
            compared = compare_methods(frame, (first, fits[first]), (second, fits[second]), metric)
            if compared:
                found[first, second] = compared
    return [
        (*pair, "all", compared) for pair, compared in zip(found, adjust(list(found.values())), strict=True)
    ]


def _comparison_row(first: str, second: str, scope: str, compared: PairedComparison, metric: Metric) -> Cells:
    difference, interval = compared.mean_difference, compared.interval
    outcomes = (compared.wins, compared.ties, compared.losses)
    bounds = None if interval is None else (interval.low, interval.high)
    text = "one seed" if bounds is None else _interval_text(*bounds, metric)
    return {
        "pair": f"{METHODS[first].label} {MINUS} {METHODS[second].label}",
        "scope": scope,
        **value_cell("runs", "count", compared.runs, str(compared.runs)),
        **value_cell("settings", "count", compared.groups, str(compared.groups)),
        **value_cell("difference", "mean", difference, _finer(difference, metric, signed=True)),
        **cell("interval", text, ("low", "high"), bounds),
        **cell("outcomes", " / ".join(map(str, outcomes)), ("wins", "ties", "losses"), outcomes),
        **value_cell("p", "value", compared.p_value, _p_text(compared.p_value)),
        **value_cell("holm", "value", compared.adjusted_p, _p_text(compared.adjusted_p)),
        "verdict": verdict(compared),
    }


def _sample_row(record: Mapping[str, Any], found: Mapping[str, Any]) -> Cells:
    run, metric, (first, second) = record["run"], METRICS[found["metric"]], HEADLINE
    low, high, difference, label = found["low"], found["high"], found["difference"], METHODS[first].label
    return {
        **{key: str(run[key]) for key in ("dataset", "model", "loss", "seed")},
        "metric": metric.heading,
        **value_cell("samples", "count", record["samples"], str(record["samples"])),
        **value_cell(second, "value", found["second"], _finer(found["second"], metric)),
        **value_cell(first, "value", found["first"], _finer(found["first"], metric)),
        **value_cell("difference", "value", difference, _finer(difference, metric, signed=True)),
        **cell("interval", _interval_text(low, high, metric), ("low", "high"), (low, high)),
        "outcome": f"{label} lower" if high < 0 else f"{label} higher" if low > 0 else "open",
    }


def _interval_text(low: float, high: float, metric: Metric) -> str:
    return f"{_finer(low, metric, signed=True)} to {_finer(high, metric, signed=True)}"


def _finer(value: float, metric: Metric, *, signed: bool = False) -> str:
    """Return a value with one more decimal than scores have: differences are small."""
    return format_number(value * metric.factor, metric.decimals + 1, signed=signed)


def _p_text(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"
