"""Statistics in rows: calibrators compared over runs and over test samples, ranked, and their optimism."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from focalcal.reporting.statistics.comparisons import compare_by, compare_methods, mean_optimism
from focalcal.reporting.statistics.tests import PairedComparison, Ranking, adjust
from focalcal.reporting.statistics.wording import verdict
from focalcal.reporting.tables.cells import Scale, loss_name, number
from focalcal.reporting.tables.formats import Cell, Column, Row, Table
from focalcal.reporting.tables.overview import SCALES, chosen_fits, method_name, metric_name

PAIRS = (
    ("fts", "ts"),
    ("ts", "none"),
    ("fts", "none"),
    ("psi", "none"),
    ("fts-line", "fts"),
    ("fts-continuous", "fts"),
)
"""First against second; the first pair is the headline, also compared dataset by dataset and loss by loss."""


def comparisons_table(frame: pd.DataFrame, metric: str, criterion: str, *, seed: int = 0) -> Table | None:
    """Return paired comparisons over runs: calibrators over all runs, then FTS against TS part by part.

    Three families, each Holm-corrected by itself: pairs of calibrators, datasets, losses. None where no run
    has two calibrators.
    """
    frame = frame[(frame["metric"] == metric) & (frame["split"] == "test")]
    fits = dict(chosen_fits(frame, criterion))
    families = [_pairs_family(frame, fits, metric, seed)]
    first, second = PAIRS[0]
    if first in fits and second in fits:
        sides = (first, fits[first]), (second, fits[second])
        for column in ("dataset", "loss"):
            found = compare_by(frame, column, *sides, metric, seed=seed)
            families.append([(first, second, f"{column} {value}", c) for value, c in found.items()])
    scale = SCALES[metric]
    groups = tuple(tuple(_comparison_row(*entry, scale) for entry in family) for family in families if family)
    if not groups:
        return None
    unit = " points" if scale.factor == 100 else ""
    columns = (
        Column("pair", "Comparison"),
        Column("scope", "Runs of"),
        Column("runs", "Runs", ("count",)),
        Column("settings", "Settings", ("count",)),
        Column("difference", f"Difference{unit}", ("mean",)),
        Column("interval", f"95 % interval{unit}", ("low", "high")),
        Column("outcomes", "Wins / ties / losses", ("wins", "ties", "losses")),
        Column("p", "p (Wilcoxon)", ("value",)),
        Column("holm", "p (Holm)", ("value",)),
        Column("verdict", "What follows"),
    )
    chosen_by = metric_name(criterion)
    return Table(
        name="comparisons",
        title=f"Paired differences of test {scale.inline}, fits chosen by validation {chosen_by}",
        columns=columns,
        groups=groups,
        notes=(
            (
                "Difference is the first calibrator minus the second, mean over settings "
                "(dataset, model, loss) of the mean over seeds: negative speaks for the first."
            ),
            (
                "Interval: bootstrap over the seeds of each setting; none where a setting has one seed. It "
                "speaks of new seeds in the same settings; few seeds make it too short."
            ),
            (
                "Runs of one dataset share its validation and test samples: they are less independent than "
                "the test takes them to be."
            ),
            "Holm's correction is over the rows between two rules.",
            "'too few runs': even runs that all agree could not give p < 0.05.",
        ),
    )


def samples_table(diagnostics: Sequence[Mapping[str, Any]]) -> Table | None:
    """Return FTS against TS on each run's test samples; None where no run has both."""
    rows = []
    for record in diagnostics:
        run = record["run"]
        for found in record["comparisons"]:
            scale = SCALES[found["metric"]]
            decimals = scale.decimals + 1
            interval = " to ".join(
                number(found[side] * scale.factor, decimals, signed=True) for side in ("low", "high")
            )
            sure = "FTS lower" if found["high"] < 0 else "FTS higher" if found["low"] > 0 else "open"
            rows.append(
                (
                    *(Cell(str(run[key])) for key in ("dataset", "model", "loss", "seed")),
                    Cell(scale.label),
                    Cell(str(record["samples"]), (record["samples"],)),
                    *(
                        Cell(number(found[side] * scale.factor, decimals), (found[side],))
                        for side in ("second", "first")
                    ),
                    Cell(
                        number(found["difference"] * scale.factor, decimals, signed=True),
                        (found["difference"],),
                    ),
                    Cell(interval, (found["low"], found["high"])),
                    Cell(sure),
                )
            )
    if not rows:
        return None
    criteria = sorted({record["criterion"] for record in diagnostics})
    columns = (
        Column("dataset", "Dataset", merge=True),
        Column("model", "Model", merge=True),
        Column("loss", "Loss"),
        Column("seed", "Seed"),
        Column("metric", "Metric"),
        Column("samples", "Test samples", ("count",)),
        Column("ts", "TS", ("value",)),
        Column("fts", "FTS", ("value",)),
        Column("difference", "FTS \N{MINUS SIGN} TS", ("value",)),
        Column("interval", "95 % interval", ("low", "high")),
        Column("outcome", "What follows"),
    )
    return Table(
        name="samples",
        title=f"FTS against TS on each run's test samples, chosen by validation {metric_name(criteria[0])}",
        columns=columns,
        groups=(tuple(rows),),
        notes=(
            (
                "Basic bootstrap over test samples, the same samples for both calibrators; the model and its "
                "validation data stay as they are."
            ),
            "Intervals are not corrected for their number: of 20 true ties one or so will look decided.",
        ),
    )


def ranking_table(ranking: Ranking | None, metric: str, criterion: str) -> Table | None:
    """Return average ranks, best first, and which combinations Nemenyi's test joins with the best one."""
    if ranking is None:
        return None
    best = set(next((group for group in ranking.cliques if ranking.methods[0] in group), ranking.methods[:1]))
    rows = tuple(
        (
            Cell(str(place), (place,)),
            Cell(loss_name(name.split(" / ")[0])),
            Cell(method_name(name.split(" / ")[1])),
            Cell(f"{rank:.2f}", (rank,)),
            Cell("yes" if name in best else "no"),
        )
        for place, (name, rank) in enumerate(zip(ranking.methods, ranking.average_ranks, strict=True), 1)
    )
    return Table(
        name="ranking",
        title=f"Average ranks by test {SCALES[metric].inline}, chosen by validation {metric_name(criterion)}",
        columns=(
            Column("place", "Place", ("count",)),
            Column("loss", "Training loss"),
            Column("method", "Calibrator"),
            Column("rank", "Average rank", ("mean",)),
            Column("joined", "Not separated from the best"),
        ),
        groups=(rows,),
        notes=(
            (
                f"{ranking.blocks} blocks (dataset, model, seed); critical difference of Nemenyi's test "
                f"{ranking.critical_difference:.2f} at alpha {ranking.alpha:g}."
            ),
            (
                f"Friedman's test: chi-square {ranking.friedman.chi_square:.3g}, "
                f"p = {ranking.friedman.chi_square_p:.3g}; Iman-Davenport F, p = {ranking.friedman.f_p:.3g}."
            ),
            (
                "The tests take blocks as independent; seeds of one dataset are not quite, which favours "
                "finding a difference."
            ),
        ),
    )


def optimism_table(optimism: pd.DataFrame) -> Table | None:
    """Return validation score, test score and their difference by calibrator and criterion."""
    rows = []
    for row in mean_optimism(optimism).itertuples():
        scale = SCALES.get(row.criterion, Scale(row.criterion, 1, 3))
        cells = [
            Cell(number(value * scale.factor, scale.decimals + 1, signed=name == "optimism"), (value,))
            for name, value in (
                ("validation", row.validation),
                ("test", row.test),
                ("optimism", row.optimism),
            )
        ]
        rows.append(
            (Cell(method_name(row.method)), Cell(scale.label), Cell(str(row.runs), (row.runs,)), *cells)
        )
    if not rows:
        return None
    return Table(
        name="optimism",
        title="Scores of chosen fits on the data they were chosen on and on test data, mean over runs",
        columns=(
            Column("method", "Calibrator"),
            Column("criterion", "Chosen by"),
            Column("runs", "Runs", ("count",)),
            Column("validation", "Validation", ("mean",)),
            Column("test", "Test", ("mean",)),
            Column("optimism", "Test \N{MINUS SIGN} validation", ("mean",)),
        ),
        groups=(tuple(rows),),
        notes=(
            (
                "A positive difference: the choice looked better on validation data than it is. Binned "
                "calibration errors are also larger on smaller data, which works the other way round."
            ),
        ),
    )


def _pairs_family(
    frame: pd.DataFrame, fits: Mapping[str, str], metric: str, seed: int
) -> list[tuple[str, str, str, PairedComparison]]:
    found = []
    for first, second in PAIRS:
        if first not in fits or second not in fits:
            continue
        # Fits chosen by two criteria would show the difference of the criteria, not of the calibrators.
        if len({fits[first], fits[second]} - {""}) > 1:
            continue
        comparison = compare_methods(frame, (first, fits[first]), (second, fits[second]), metric, seed=seed)
        if comparison:
            found.append((first, second, comparison))
    corrected = adjust([comparison for *_, comparison in found]) if found else []
    return [
        (first, second, "all", comparison)
        for (first, second, _), comparison in zip(found, corrected, strict=True)
    ]


def _comparison_row(first: str, second: str, scope: str, c: PairedComparison, scale: Scale) -> Row:
    decimals = scale.decimals + 1
    interval = Cell("one seed", ())
    if c.interval:
        low, high = c.interval.low, c.interval.high
        text = " to ".join(number(bound * scale.factor, decimals, signed=True) for bound in (low, high))
        interval = Cell(text, (low, high))
    return (
        Cell(f"{method_name(first)} \N{MINUS SIGN} {method_name(second)}"),
        Cell(scope),
        Cell(str(c.runs), (c.runs,)),
        Cell(str(c.groups), (c.groups,)),
        Cell(number(c.mean_difference * scale.factor, decimals, signed=True), (c.mean_difference,)),
        interval,
        Cell(f"{c.wins} / {c.ties} / {c.losses}", (c.wins, c.ties, c.losses)),
        Cell(_p_text(c.p_value), (c.p_value,)),
        Cell(_p_text(c.adjusted_p), (c.adjusted_p,)),
        Cell(verdict(c)),
    )


def _p_text(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"
