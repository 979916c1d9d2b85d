"""Paired comparisons, rankings and selection optimism from the tidy metrics."""

from collections.abc import Sequence

import pandas as pd

from focalcal.calibration.catalogue import METHODS
from focalcal.reporting.records.measurements import RUN, SETTING, rows_of_fits, shown_fits
from focalcal.reporting.statistics.tests import PairedComparison, Ranking, adjust, compare_runs, rank_methods
from focalcal.training.appearance import loss_order

HEADLINE = ("fts", "ts")
"""The pair that the report opens with, also compared dataset by dataset and loss by loss."""


def compared_pairs() -> list[tuple[str, str]]:
    """Return each method with each one that its declaration compares it with, the headline pair first."""
    pairs = [(method.id, other) for method in METHODS.values() for other in method.compared_with]
    return list(dict.fromkeys([HEADLINE, *pairs]))


def paired_scores(
    frame: pd.DataFrame,
    first: tuple[str, str],
    second: tuple[str, str],
    metric: str,
    split: str = "test",
) -> pd.DataFrame:
    """Return one row per run that has both scores: dataset, model, loss, seed, first, second.

    `first` and `second` are (method, criterion) pairs, such as ("fts", "adaece") and ("ts", "adaece").
    """
    rows = frame[(frame["split"] == split) & (frame["metric"] == metric)]
    sides = [
        rows[(rows["method"] == method) & (rows["criterion"] == criterion)]
        .set_index(RUN)["value"]
        .rename(name)
        for name, (method, criterion) in (("first", first), ("second", second))
    ]
    return pd.concat(sides, axis=1, join="inner").sort_index().reset_index()


def compare_methods(
    frame: pd.DataFrame,
    first: tuple[str, str],
    second: tuple[str, str],
    metric: str,
    *,
    split: str = "test",
    seed: int = 0,
) -> PairedComparison | None:
    """Return the comparison over all runs that have both scores, seeds resampled within their setting.

    None if no run has both.
    """
    scores = paired_scores(frame, first, second, metric, split)
    if scores.empty:
        return None
    groups = list(scores[SETTING].itertuples(index=False, name=None))
    return compare_runs(scores["first"].to_numpy(), scores["second"].to_numpy(), groups, seed=seed)


def compare_by(
    frame: pd.DataFrame,
    column: str,
    first: tuple[str, str],
    second: tuple[str, str],
    metric: str,
    *,
    split: str = "test",
    seed: int = 0,
) -> dict[str, PairedComparison]:
    """Return one comparison for each value of `column` (dataset, model or loss), Holm-corrected together."""
    values = sorted(frame[column].unique(), key=loss_order if column == "loss" else None)
    found = {
        value: comparison
        for value in values
        if (
            comparison := compare_methods(
                frame[frame[column] == value], first, second, metric, split=split, seed=seed
            )
        )
    }
    return dict(zip(found, adjust(list(found.values())), strict=True))


def score_matrix(
    frame: pd.DataFrame, methods: Sequence[tuple[str, str]], metric: str, *, split: str = "test"
) -> pd.DataFrame:
    """Return scores, one row per block (dataset, model, seed), one column per combination `loss / method`.

    Only what is comparable is kept: combinations that every dataset and model has, then the blocks that have
    all of those. `methods` are (method, criterion) pairs.
    """
    rows = rows_of_fits(frame, methods, metric, split)
    rows = rows.assign(combination=rows["loss"] + " / " + rows["method"])
    if rows.duplicated([*RUN, "method"]).any():
        raise ValueError(f"methods must hold each method with one criterion, not {sorted(methods)}")
    matrix = rows.pivot_table(index=["dataset", "model", "seed"], columns="combination", values="value")
    somewhere = matrix.notna().groupby(level=["dataset", "model"]).any().all()
    return matrix.loc[:, somewhere[somewhere].index].dropna().sort_index()


def ranking_of(frame: pd.DataFrame, metric: str, criterion: str) -> Ranking | None:
    """Return the ranking of losses x shown calibrators that apply to all losses; None if too few compare."""
    return rank_combinations(frame, shown_fits(frame, criterion), metric)


def rank_combinations(
    frame: pd.DataFrame,
    methods: Sequence[tuple[str, str]],
    metric: str,
    *,
    split: str = "test",
    alpha: float = 0.05,
) -> Ranking | None:
    """Return the ranking of losses x calibrators for a critical-difference diagram.

    None if fewer than 3 combinations or fewer than 2 blocks are comparable.
    """
    matrix = score_matrix(frame, methods, metric, split=split)
    blocks, combinations = matrix.shape
    if blocks < 2 or combinations < 3:
        return None
    return rank_methods(matrix.to_numpy(), list(matrix.columns), alpha)


def selection_optimism(frame: pd.DataFrame, *, validation: str = "val", test: str = "test") -> pd.DataFrame:
    """Return the score of each chosen fit on the split it was chosen on, and on test data.

    One row per run, method and criterion: the score is the criterion's own metric, and optimism is test minus
    validation (positive: the fit looked better than it is).
    """
    rows = frame[(frame["criterion"] != "") & (frame["criterion"] == frame["metric"])]
    keys = [*RUN, "method", "criterion"]
    sides = [
        rows[rows["split"] == split].set_index(keys)["value"].rename(name)
        for name, split in (("validation", validation), ("test", test))
    ]
    chosen = rows[rows["split"] == test].set_index(keys)[["gamma", "temperature"]]
    table = pd.concat([chosen, *sides], axis=1, join="inner").sort_index().reset_index()
    table["optimism"] = table["test"] - table["validation"]
    return table


def mean_optimism(optimism: pd.DataFrame) -> pd.DataFrame:
    """Return the mean validation score, test score and optimism of each method and criterion, with runs."""
    grouped = optimism.groupby(["method", "criterion"], sort=True)
    table = grouped[["validation", "test", "optimism"]].mean()
    table.insert(0, "runs", grouped.size())
    return table.reset_index()
