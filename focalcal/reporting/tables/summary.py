"""All tables of a results folder, written from the tidy metrics and the runs' diagnostics and fits."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from focalcal.common.io import atomic_output, write_json, write_text
from focalcal.reporting.layout import TABLES, table_names
from focalcal.reporting.records import published
from focalcal.reporting.records.measurements import summarise
from focalcal.reporting.report.html_parts import table_html
from focalcal.reporting.statistics.comparisons import rank_combinations, selection_optimism
from focalcal.reporting.statistics.headline import headline
from focalcal.reporting.statistics.tests import Ranking
from focalcal.reporting.tables import bound_hits
from focalcal.reporting.tables import overview as report_tables
from focalcal.reporting.tables import papers as tables
from focalcal.reporting.tables import statistics as statistics_tables
from focalcal.reporting.tables.cells import index_published
from focalcal.reporting.tables.formats import Table, write_table

GROUP = ["dataset", "model", "loss", "method", "criterion", "split", "metric"]
RANKED_METHODS = ("none", "ts", "fts")


def over_seeds(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return one row a group of seeds: mean, sample standard deviation (none for one seed), their number."""
    groups = metrics.groupby(GROUP, sort=False)["value"]
    return groups.agg(mean="mean", std="std", seeds="count").reset_index()


def write_summary(metrics: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write `over_seeds(metrics)` as CSV."""
    with atomic_output(path) as partial:
        over_seeds(metrics).to_csv(partial, index=False, lineterminator="\n")


def write_score_tables(metrics: pd.DataFrame, metric: str, criterion: str, folder: Path) -> None:
    """Write the tables of scores over seeds, ours and those in the papers' layouts."""
    scores = summarise(metrics)
    papers = index_published(published.unique_cells(published.load_results()))
    found = [
        report_tables.overview_table(scores, metric, criterion),
        tables.k24_table(scores, papers),
        *tables.m20_tables(scores, papers),
        tables.c21_table(scores, published.load_c21_statements()),
    ]
    _write(found, "scores", folder)


def write_statistics_tables(
    metrics: pd.DataFrame,
    diagnostics: Sequence[Mapping[str, Any]],
    fitted: Iterable[tuple[Mapping[str, str], Sequence[Mapping[str, Any]]]],
    metric: str,
    criterion: str,
    folder: Path,
) -> None:
    """Write comparisons over runs and over samples, ranking, optimism, bound hits, and headline.json."""
    write_json(folder / "headline.json", headline(metrics, metric, criterion))
    ranking = ranking_of(metrics, metric, criterion)
    found = [
        statistics_tables.comparisons_table(metrics, metric, criterion),
        statistics_tables.samples_table(diagnostics),
        statistics_tables.ranking_table(ranking, metric, criterion),
        statistics_tables.optimism_table(selection_optimism(metrics)),
        bound_hits.bound_hits_table(fitted),
    ]
    _write(found, "statistics", folder)


def ranking_of(metrics: pd.DataFrame, metric: str, criterion: str) -> Ranking | None:
    """Return the ranking of losses x (as trained, TS, FTS), None where too little is comparable."""
    fits = [pair for pair in report_tables.chosen_fits(metrics, criterion) if pair[0] in RANKED_METHODS]
    return rank_combinations(metrics, fits, metric)


def _write(found: Sequence[Table | None], stage: str, folder: Path) -> None:
    """Write each of a rule's tables, an empty one where the runs at hand do not fill it."""
    headings = {product.name: product.heading for product in TABLES}
    made = {table.name: table for table in found if table is not None}
    for name in table_names(stage):
        table = made.get(name) or report_tables.empty_table(name, headings[name])
        write_table(table, folder)
        write_text(folder / f"{name}.html", table_html(table))
