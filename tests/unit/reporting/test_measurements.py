import pandas as pd
import pytest

from focalcal.common.errors import UserError
from focalcal.reporting.records.measurements import (
    COLUMNS,
    check_metrics,
    chosen_fits,
    load_metrics,
    rows_of_fits,
    summarise,
)

CSV = """dataset,model,loss,seed,method,criterion,gamma,temperature,split,metric,value
digits,cnn-small,ce,0,none,,0,1,test,ece,0.25
digits,cnn-small,ce,1,none,,0,1,test,ece,0.75
digits,cnn-small,ce,0,fts,ece,-0.5,1.5,test,ece,0.1
digits,cnn-small,ce,1,fts,ece,5,2.5,test,ece,0.3
digits,cnn-small,ce,0,fts,ece,-0.5,1.5,val,ece,0.05
digits,cnn-small,focal-2,0,other,,,,test,ece,0.5
digits,cnn-small,focal-2,0,other,,,,test,s99_accuracy,nan
"""


@pytest.fixture
def frame(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text(CSV)
    return load_metrics(path)


def test_load_keeps_texts_as_texts_and_leaves_out_undefined_scores(frame):
    assert list(frame.columns) == list(COLUMNS)
    assert frame["criterion"].tolist() == ["", "", "ece", "ece", "ece", ""]
    assert frame["seed"].tolist() == ["0", "1", "0", "1", "0", "0"]
    assert frame["value"].dtype == float


def test_summary_over_seeds(frame):
    summary = summarise(frame)
    setting = ("digits", "cnn-small", "ce")
    fields = ["mean", "std", "seeds", "temperature", "gamma_low", "gamma_high"]
    assert list(summary.columns) == fields
    raw = summary.loc[(*setting, "none", "", "ece")]
    assert raw.tolist() == [0.5, pytest.approx(0.5 / 2**0.5), 2, 1.0, 0.0, 0.0]
    fts = summary.loc[(*setting, "fts", "ece", "ece")]
    assert fts.tolist() == [pytest.approx(0.2), pytest.approx(0.2 / 2**0.5), 2, 2.0, -0.5, 5.0]
    other = summary.loc[("digits", "cnn-small", "focal-2", "other", "", "ece")]
    assert other[["mean", "seeds"]].tolist() == [0.5, 1]
    assert other[["std", "temperature", "gamma_low", "gamma_high"]].isna().all()
    assert len(summary) == 3


def test_a_missing_column_is_an_error(frame):
    with pytest.raises(ValueError, match="metrics lack the columns split, value; they need dataset, model"):
        check_metrics(frame.drop(columns=["split", "value"]))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            CSV.replace("0.25", "inf"),
            "an infinite value: dataset digits, model cnn-small, loss ce, seed 0, method none",
        ),
        (CSV + CSV.splitlines()[1], "the same score twice: dataset digits, model cnn-small, loss ce, seed 0"),
    ],
)
def test_a_table_that_nobody_wrote_is_refused_in_one_line(tmp_path, content, reason):
    path = tmp_path / "metrics.csv"
    path.write_text(content)
    with pytest.raises(UserError, match=rf"metrics.csv is damaged \(metrics hold {reason}.*; delete it"):
        load_metrics(path)


def test_the_same_score_twice_is_an_error(frame):
    with pytest.raises(ValueError, match="the same score twice: dataset digits"):
        check_metrics(pd.concat([frame, frame.head(1)]))


@pytest.mark.parametrize(("criteria", "chosen"), [({""}, ""), ({"nll", "ece"}, "ece"), ({"nll"}, "nll")])
def test_one_fit_represents_a_method(criteria, chosen):
    frame = pd.DataFrame([("ts", criterion) for criterion in criteria], columns=["method", "criterion"])
    assert chosen_fits(frame, "ece") == [("ts", chosen)]


def test_fits_come_in_the_catalogues_order():
    pairs = [
        ("psi", ""),
        ("fts", "nll"),
        ("fts", "ece"),
        ("vs", "nll"),
        ("none", ""),
    ]
    frame = pd.DataFrame(pairs, columns=["method", "criterion"])
    assert chosen_fits(frame, "ece") == [
        ("none", ""),
        ("fts", "ece"),
        ("psi", ""),
        ("vs", "nll"),
    ]


def fits_frame(*pairs):
    return pd.DataFrame(pairs, columns=["method", "criterion"]).assign(split="test", metric="ece")


def test_a_method_is_represented_by_its_fit_of_the_criterion_or_its_only_one():
    frame = fits_frame(
        ("ts", "nll"),
        ("ts", "ece"),
        ("none", ""),
        ("vs", "nll"),
        ("fts", "nll"),
        ("fts", "adaece"),
    )
    # FTS has two fits, of which none is by ECE: the first stands for it.
    fits = [("none", ""), ("ts", "ece"), ("fts", "nll"), ("vs", "nll")]
    assert chosen_fits(frame, "ece") == fits


def test_rows_of_fits_keep_their_columns_where_there_are_none():
    frame = fits_frame(("ts", "nll"), ("ts", "ece"))
    assert list(rows_of_fits(frame, [("ts", "ece")], "ece")["criterion"]) == ["ece"]
    assert list(rows_of_fits(frame, [("ts", "ece")], "nll").columns) == list(frame.columns)
