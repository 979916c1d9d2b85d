import pandas as pd
import pytest

from focalcal.reporting.records.measurements import COLUMNS
from focalcal.reporting.statistics import comparisons

TS, FTS = ("ts", "ece"), ("fts", "ece")


def rows(dataset, loss, seed, scores, split="test", model="mlp"):
    """Return metric rows of one run from a mapping (method, criterion) -> ECE."""
    return [
        (dataset, model, loss, str(seed), method, criterion, 1.0, 1.5, split, "ece", value)
        for (method, criterion), value in scores.items()
    ]


def frame(*blocks):
    return pd.DataFrame([row for block in blocks for row in block], columns=list(COLUMNS))


@pytest.fixture
def runs():
    """Return three seeds of ce (FTS better by 0.1) and of focal-2 (worse by 0.3), and a run without FTS."""
    return frame(
        *(rows("digits", "ce", seed, {TS: 0.5, FTS: 0.4, ("none", ""): 0.9}) for seed in range(3)),
        *(rows("digits", "focal-2", seed, {TS: 0.5, FTS: 0.8, ("none", ""): 0.2}) for seed in range(3)),
        rows("gauss-3", "ce", 0, {TS: 0.5}),
    )


def test_runs_are_paired_and_lonely_ones_left_out(runs):
    scores = comparisons.paired_scores(runs, [FTS, TS], "ece")
    assert list(scores.columns) == ["fts", "ts"]
    assert scores.index.get_level_values("loss").tolist() == ["ce"] * 3 + ["focal-2"] * 3
    assert scores["fts"].tolist() == [0.4] * 3 + [0.8] * 3
    assert scores["ts"].tolist() == [0.5] * 6


def test_compare_methods(runs):
    result = comparisons.compare_methods(runs, FTS, TS, "ece")
    assert (result.runs, result.groups, result.wins, result.losses) == (6, 2, 3, 3)
    assert result.mean_difference == pytest.approx(0.1)
    assert (result.interval.low, result.interval.high) == (pytest.approx(0.1), pytest.approx(0.1))


def test_compare_methods_without_a_pair(runs):
    assert comparisons.compare_methods(runs, ("psi", ""), TS, "ece") is None
    assert comparisons.compare_methods(runs, FTS, TS, "nll") is None


def test_score_matrix_keeps_what_every_dataset_and_model_has(runs):
    matrix = comparisons.score_matrix(runs, [TS, FTS, ("none", "")], "ece")
    assert list(matrix.columns) == ["ce / ts"]
    assert len(matrix) == 4
    digits = comparisons.score_matrix(runs[runs["dataset"] == "digits"], [TS, FTS], "ece")
    assert list(digits.columns) == ["ce / fts", "ce / ts", "focal-2 / fts", "focal-2 / ts"]
    assert digits.iloc[0].tolist() == [0.4, 0.5, 0.8, 0.5]


def test_score_matrix_drops_incomplete_blocks(runs):
    digits = runs[(runs["dataset"] == "digits") & ~((runs["seed"] == "2") & (runs["loss"] == "ce"))]
    assert len(comparisons.score_matrix(digits, [TS, FTS], "ece")) == 2


def test_score_matrix_refuses_a_method_with_two_criteria(runs):
    both = pd.concat([runs, frame(rows("digits", "ce", 0, {("ts", "nll"): 0.6}))])
    with pytest.raises(ValueError, match="duplicate entries"):
        comparisons.score_matrix(both, [TS, ("ts", "nll")], "ece")


def test_ranking(runs):
    digits = runs[runs["dataset"] == "digits"]
    ranking = comparisons.ranking_of(digits, "ece", "ece")
    assert ranking.methods[0] == "focal-2 / none"
    assert ranking.average_ranks == (1.0, 2.0, 3.5, 3.5, 5.0, 6.0)
    assert ranking.blocks == 3
    assert comparisons.ranking_of(runs, "ece", "ece") is None


def test_selection_optimism():
    data = frame(
        rows("digits", "ce", 0, {TS: 0.10, FTS: 0.05, ("none", ""): 0.3}, split="val"),
        rows("digits", "ce", 0, {TS: 0.11, FTS: 0.09, ("none", ""): 0.3}),
        rows("digits", "ce", 1, {FTS: 0.07}, split="val"),
        rows("digits", "ce", 1, {FTS: 0.06}),
    )
    data.loc[len(data)] = ("digits", "mlp", "ce", "0", "ts", "ece", 0.0, 1.5, "test", "nll", 0.7)
    table = comparisons.optimism_by_run(data)
    assert table[["seed", "method"]].to_numpy().tolist() == [["0", "fts"], ["0", "ts"], ["1", "fts"]]
    assert table["optimism"].tolist() == pytest.approx([0.04, 0.01, -0.01])
