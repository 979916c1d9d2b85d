"""Calibrators compared in pairs: over runs, and over the test samples of each run."""

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.products import table
from focalcal.reporting.records.measurements import chosen_fits
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.comparisons import HEADLINE, compare_by, compare_methods, compared_pairs
from focalcal.reporting.statistics.tests import PairedComparison, adjust
from focalcal.reporting.statistics.wording import verdict
from focalcal.reporting.tables.columns import DATASET_MODEL, metric_format, number_column
from focalcal.reporting.tables.table import Column, Row, Table
from focalcal.reporting.text import MINUS

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
        _comparison_row(*entry) | {"_family": number}
        for number, family in enumerate(families)
        for entry in family
    ]
    if not rows:
        return None
    unit, difference = metric.difference_unit, metric_format(metric, more=1, signed=True)
    return Table(
        title=(
            f"Paired differences of test {metric.inline}, fits chosen by validation "
            f"{METRICS[sources.criterion].name}"
        ),
        frame=pd.DataFrame(rows),
        columns=(
            Column("Comparison", "pair"),
            Column("Runs of", "scope"),
            number_column("runs_count", "Runs"),
            number_column("settings_count", "Settings"),
            number_column("difference_mean", f"Difference{unit}", difference),
            Column(f"95 % interval{unit}", lambda row: _interval_text(row, difference), "interval_low"),
            Column("Wins / ties / losses", _outcomes_text, "outcomes_wins"),
            number_column("p_value", "p (Wilcoxon)", _p_text),
            number_column("holm_value", "p (Holm)", _p_text),
            Column("What follows", "verdict"),
        ),
        group=("_family",),
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
        frame=pd.DataFrame(rows),
        columns=(
            *DATASET_MODEL,
            Column("Loss", "loss"),
            Column("Seed", "seed"),
            Column("Metric", "metric"),
            number_column("samples_count", "Test samples"),
            _own_scale_column(f"{HEADLINE[1]}_value", second),
            _own_scale_column(f"{HEADLINE[0]}_value", first),
            _own_scale_column("difference_value", f"{first} {MINUS} {second}", signed=True),
            Column(
                "95 % interval",
                lambda row: _interval_text(row, _own_scale(row, signed=True)),
                "interval_low",
            ),
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


def _comparison_row(first: str, second: str, scope: str, compared: PairedComparison) -> dict[str, Any]:
    interval = compared.interval
    return {
        "pair": f"{METHODS[first].label} {MINUS} {METHODS[second].label}",
        "scope": scope,
        "runs_count": compared.runs,
        "settings_count": compared.groups,
        "difference_mean": compared.mean_difference,
        "interval_low": None if interval is None else interval.low,
        "interval_high": None if interval is None else interval.high,
        "outcomes_wins": compared.wins,
        "outcomes_ties": compared.ties,
        "outcomes_losses": compared.losses,
        "p_value": compared.p_value,
        "holm_value": compared.adjusted_p,
        "verdict": verdict(compared),
    }


def _sample_row(record: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    first, second = HEADLINE
    label = METHODS[first].label
    return {
        **{key: str(record["run"][key]) for key in ("dataset", "model", "loss", "seed")},
        "metric": METRICS[found["metric"]].heading,
        "_metric": found["metric"],
        "samples_count": record["samples"],
        f"{second}_value": found["second"],
        f"{first}_value": found["first"],
        "difference_value": found["difference"],
        "interval_low": found["low"],
        "interval_high": found["high"],
        "outcome": f"{label} lower"
        if found["high"] < 0
        else f"{label} higher"
        if found["low"] > 0
        else "open",
    }


def _own_scale_column(name: str, header: str, *, signed: bool = False) -> Column:
    return Column(header, lambda row: _own_scale(row, signed=signed)(row[name]), name)


def _own_scale(row: Row, *, signed: bool = False) -> Callable[[float], str]:
    """Return the format of a row's values, whose metric is its own."""
    return metric_format(METRICS[row["_metric"]], more=1, signed=signed)


def _interval_text(row: Row, difference: Callable[[float], str]) -> str:
    if pd.isna(row["interval_low"]):
        return "one seed"
    return f"{difference(row['interval_low'])} to {difference(row['interval_high'])}"


def _outcomes_text(row: Row) -> str:
    return " / ".join(str(row[f"outcomes_{name}"]) for name in ("wins", "ties", "losses"))


def _p_text(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"
