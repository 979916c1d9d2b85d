"""Calibrators compared in pairs: over runs, and over the test samples of each run."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.products import table
from focalcal.reporting.records.measurements import chosen_fits
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.comparisons import HEADLINE, compare_methods, compared_pairs
from focalcal.reporting.statistics.tests import OPEN, adjust
from focalcal.reporting.tables.columns import (
    DATASET_MODEL,
    LOSS,
    finer_column,
    finer_text,
    number_column,
    p_text,
)
from focalcal.reporting.tables.table import Column, Row, Table
from focalcal.reporting.text import MINUS
from focalcal.training.appearance import loss_label, loss_order

OUTCOMES = "{outcomes_wins} / {outcomes_ties} / {outcomes_losses}"
COMPARISON_NOTES = (
    (
        "Interval: bootstrap over the seeds of each setting; none if a setting has one seed. It describes "
        "new seeds in the same settings; with few seeds it is too short."
    ),
    (
        "Runs on one dataset share its validation and test samples, so they are less independent than the "
        "test assumes."
    ),
    "Holm's correction covers the rows between two rules.",
    "'too few runs': even if all runs of the row agreed, the corrected p could not be below 0.05.",
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
    section="tests",
    order=10,
    heading="Focal temperature scaling against temperature scaling",
    caption="Paired over runs: the same model, calibrated in two ways.",
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
    families = [[(pair, "all", frame) for pair in compared_pairs()]]
    for column, order in (("dataset", None), ("loss", loss_order)):
        values = sorted(frame[column].unique(), key=order)
        families.append([(HEADLINE, f"{column} {value}", frame[frame[column] == value]) for value in values])
    rows = [
        row | {"_family": number, "_metric": metric.id}
        for number, family in enumerate(families)
        for row in _family_rows(family, fits, metric.id)
    ]
    if not rows:
        return None
    unit = f" ({metric.difference_unit.strip()})" if metric.difference_unit else ""
    return Table(
        title=(
            f"Paired differences of test {metric.inline}, fits chosen by validation "
            f"{METRICS[sources.criterion].name}"
        ),
        frame=pd.DataFrame(rows),
        columns=(
            Column("Comparison", "pair"),
            Column("Runs of", _scope_text),
            number_column("runs_count", "Runs"),
            number_column("settings_count", "Settings"),
            finer_column("difference_mean", f"Difference{unit}", signed=True),
            Column(f"95 % interval{unit}", _interval_text, "interval_low"),
            Column("Wins / ties / losses", OUTCOMES.format_map, "outcomes_wins"),
            number_column("p_value", "p (Wilcoxon)", p_text),
            number_column("holm_value", "p (Holm)", p_text),
            Column("What follows", "verdict"),
        ),
        group=("_family",),
        notes=(
            (
                "The difference is the first calibrator minus the second: the mean over settings (dataset, "
                "model, loss) of the mean over seeds. "
                f"A {'positive' if metric.higher_is_better else 'negative'} difference favours the first."
            ),
            *COMPARISON_NOTES,
        ),
    )


@table(
    section="tests",
    order=40,
    heading="The same comparison over test samples",
    caption="How far the difference of one run would move with another test set of the same size.",
    inputs=("runs", "diagnostics"),
)
def samples(sources: Sources) -> Table | None:
    """Return FTS against TS on the test samples of each run; None if no run has both."""
    records = sources.diagnostics
    rows = [
        _sample_row(record, found)
        for record in records
        for found in record["comparisons"]
        if (found["method"], found["against"], found["criterion"]) == (*HEADLINE, record["criterion"])
    ]
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
            LOSS,
            Column("Seed", "seed"),
            Column("Metric", "metric"),
            number_column("samples_count", "Test samples"),
            finer_column(f"{HEADLINE[1]}_value", second),
            finer_column(f"{HEADLINE[0]}_value", first),
            finer_column("difference_value", f"{first} {MINUS} {second}", signed=True),
            Column("95 % interval", _interval_text, "interval_low"),
            Column("What follows", "outcome"),
        ),
        notes=SAMPLE_NOTES,
    )


def _family_rows(
    family: Iterable[tuple[tuple[str, str], str, pd.DataFrame]], fits: Mapping[str, str], metric: str
) -> Iterator[dict[str, Any]]:
    """Yield a row for each pair and scope whose runs have both methods, p-values corrected together."""
    found = {}
    for (first, second), scope, frame in family:
        # Fits chosen by two criteria would show the difference of the criteria, not of the calibrators.
        if {first, second} <= fits.keys() and len({fits[first], fits[second]} - {""}) < 2:
            compared = compare_methods(frame, (first, fits[first]), (second, fits[second]), metric)
            if compared is not None:
                found[first, second, scope] = compared
    for (first, second, scope), compared in zip(found, adjust(list(found.values())), strict=True):
        interval = compared.interval
        yield {
            "pair": f"{METHODS[first].label} {MINUS} {METHODS[second].label}",
            "scope": scope,
            "runs_count": compared.runs,
            "settings_count": compared.groups,
            "difference_mean": compared.mean_difference,
            "interval_low": interval and interval.low,
            "interval_high": interval and interval.high,
            "outcomes_wins": compared.wins,
            "outcomes_ties": compared.ties,
            "outcomes_losses": compared.losses,
            "p_value": compared.p_value,
            "holm_value": compared.adjusted_p,
            "verdict": compared.verdict,
        }


def _sample_row(record: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    (first, second), low, high = HEADLINE, found["low"], found["high"]
    label = METHODS[first].label
    return {
        **{key: str(record["run"][key]) for key in ("dataset", "model", "loss", "seed")},
        "metric": METRICS[found["metric"]].heading,
        "_metric": found["metric"],
        "samples_count": record["samples"],
        f"{second}_value": found["against_value"],
        f"{first}_value": found["value"],
        "difference_value": found["difference"],
        "interval_low": low,
        "interval_high": high,
        "outcome": f"{label} lower" if high < 0 else f"{label} higher" if low > 0 else OPEN,
    }


def _scope_text(row: Row) -> str:
    """Return which runs are compared; losses by their labels."""
    kind, _, name = row["scope"].partition(" ")
    return loss_label(name) if kind == "loss" else name or kind


def _interval_text(row: Row) -> str:
    low, high = (finer_text(row, name, signed=True) for name in ("interval_low", "interval_high"))
    return f"{low} to {high}" if low else "one seed"
