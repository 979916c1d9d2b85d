"""Paired comparisons, rankings and selection optimism from the tidy metrics."""

from collections.abc import Sequence

import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.records.measurements import RUN, rows_of_fits, shown_fits
from focalcal.reporting.statistics.tests import PairedComparison, Ranking, compare_runs, rank_methods

HEADLINE = ("fts", "ts")
"""The pair that the report opens with, also compared dataset by dataset and loss by loss."""
Fit = tuple[str, str]
"""Method and criterion, such as ("fts", "adaece")."""


def compared_pairs() -> list[tuple[str, str]]:
    """Return each method with each one that its declaration compares it with, the headline pair first."""
    pairs = [(method.id, other) for method in METHODS.values() for other in method.compared_with]
    return list(dict.fromkeys([HEADLINE, *pairs]))


def paired_scores(frame: pd.DataFrame, fits: Sequence[Fit], metric: str) -> pd.DataFrame:
    """Return test scores, one row per run that has all of them and one column per method."""
    rows = rows_of_fits(frame, fits, metric)
    scores = rows.pivot_table(index=RUN, columns="method", values="value")
    return scores.reindex(columns=[method for method, _ in fits]).dropna()


def compare_methods(frame: pd.DataFrame, first: Fit, second: Fit, metric: str) -> PairedComparison | None:
    """Return the comparison over all runs that have both scores, seeds resampled within their setting.

    None if no run has both.
    """
    scores = paired_scores(frame, [first, second], metric)
    if scores.empty:
        return None
    settings = list(scores.index.droplevel("seed"))
    first_scores, second_scores = scores.to_numpy().T
    return compare_runs(first_scores, second_scores, settings)


def score_matrix(frame: pd.DataFrame, fits: Sequence[Fit], metric: str) -> pd.DataFrame:
    """Return test scores, one row per block (dataset, model, seed), one column per `loss / method`.

    Only what is comparable is kept: combinations that every dataset and model has, then the blocks that have
    all of those. Each method comes with one criterion.
    """
    rows = rows_of_fits(frame, fits, metric)
    rows = rows.assign(combination=rows["loss"] + " / " + rows["method"])
    # Unlike pivot_table, pivot refuses a method with two criteria.
    matrix = rows.pivot(index=["dataset", "model", "seed"], columns="combination", values="value")  # noqa: PD010
    somewhere = matrix.notna().groupby(level=["dataset", "model"]).any().all()
    return matrix.loc[:, somewhere].dropna()


def ranking_of(frame: pd.DataFrame, metric: str, criterion: str) -> Ranking | None:
    """Return the ranking of losses x shown calibrators that apply to all losses.

    None if fewer than 3 combinations or fewer than 2 blocks are comparable.
    """
    matrix = score_matrix(frame, shown_fits(frame, criterion), metric)
    blocks, combinations = matrix.shape
    if blocks < 2 or combinations < 3:
        return None
    losses = -matrix if METRICS[metric].higher_is_better else matrix
    return rank_methods(losses.to_numpy(), list(matrix.columns))


def optimism_by_run(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the score of each chosen fit on the validation data it was chosen on, and on test data.

    One row per run, method and criterion: the score is the criterion's own metric, and optimism is test minus
    validation (positive: the fit looked better than it is).
    """
    rows = frame[(frame["criterion"] == frame["metric"]) & frame["split"].isin(["val", "test"])]
    scores = rows.pivot_table(index=[*RUN, "method", "criterion"], columns="split", values="value")
    scores = scores.reindex(columns=["val", "test"]).dropna().rename(columns={"val": "validation"})
    return scores.assign(optimism=scores["test"] - scores["validation"]).reset_index()
