import numpy as np
import pandas as pd
import pytest

from focalcal.data.networks import find_network
from focalcal.reporting.records import published
from focalcal.training.catalogue import parse_loss
from focalcal.training.models.catalogue import MODELS

K24_LOSSES = ["ce", "focal-1", "focal-3", "focal-7", "flsd-53", "adafocal"]
M20_PLACES = {
    *(
        (dataset, model)
        for dataset in ("cifar10", "cifar100")
        for model in ("resnet50", "resnet110-bottleneck", "wrn-26-10", "densenet121")
    ),
    ("20newsgroups", "gp-cnn"),
    ("sst-binary", "tree-lstm"),
}
FOCAL_SEVEN = [
    "focal-1",
    "focal-2",
    "focal-3",
    "focal-sched-531",
    "focal-sched-532",
    "flsd-532",
    "flsd-53",
]
ALL_TEN = ["ce", "brier", "mmce", *FOCAL_SEVEN]
BASELINES = ["ce", "brier", "mmce", "flsd-53"]
VARIANTS = ["focal-3", "focal-sched-532", "flsd-53"]
BEFORE, BY_ECE, BY_ADAECE = ("none", ""), ("ts", "ece"), ("ts", "adaece")
M20_TABLES = {
    "1": (BASELINES, "ece", [BEFORE, BY_ECE]),
    "2": (BASELINES, "adaece", [BEFORE, BY_ADAECE]),
    "3": (["ce", "brier", "mmce", "focal-3", "focal-sched-532", "flsd-53"], "error", [BEFORE]),
    "4": (VARIANTS, "ece", [BEFORE, BY_ECE]),
    "5": (VARIANTS, "adaece", [BEFORE, BY_ADAECE]),
    "7": (FOCAL_SEVEN, "ece", [BEFORE, BY_ECE]),
    "8": (FOCAL_SEVEN, "adaece", [BEFORE, BY_ADAECE]),
    "9": (FOCAL_SEVEN, "error", [BEFORE]),
    "10": (ALL_TEN, "nll", [BEFORE]),
    "11": (ALL_TEN, "nll", [BY_ECE]),
    "12": (ALL_TEN, "mce", [BEFORE]),
    "13": (ALL_TEN, "mce", [BY_ECE]),
}


@pytest.fixture(scope="module")
def results():
    return published.load_results()


@pytest.fixture(scope="module")
def k24(results):
    return results[results["paper"] == "K24"]


@pytest.fixture(scope="module")
def m20(results):
    return results[results["paper"] == "M20"]


def only(cells, **wanted):
    for name, value in wanted.items():
        cells = cells[cells[name] == value]
    assert len(cells) == 1
    return cells.iloc[0]


def test_k24_table_1_has_36_rows_of_3_columns(k24):
    assert k24["row"].nunique() == 36
    assert len(k24) == 108
    settings = {
        (dataset, loss, method, metric)
        for dataset in ("cifar10", "cifar100", "tinyimagenet")
        for loss in K24_LOSSES
        for method in ("ts", "fts")
        for metric in ("accuracy", "nll", "adaece")
    }
    assert set(zip(k24["dataset"], k24["loss"], k24["method"], k24["metric"], strict=True)) == settings
    assert set(k24["column"]) == {"ACCURACY", "LOG-LOSS", "ECE"}
    assert set(k24["seeds"]) == {5}


def test_k24_text_holds_for_its_table(k24):
    """FTS has the lower ECE for each baseline, the same accuracy, and sometimes the higher log-loss."""
    wide = k24.pivot_table(index=["dataset", "loss"], columns=["metric", "method"], values="value")
    assert (wide["adaece", "fts"] < wide["adaece", "ts"]).all()
    assert (wide["accuracy", "fts"] == wide["accuracy", "ts"]).all()
    assert (wide["nll", "fts"] > wide["nll", "ts"]).sum() == 5


def test_k24_cells_by_value(k24):
    cell = only(k24, dataset="cifar100", loss="focal-7", method="fts", metric="adaece")
    assert (cell["printed"], cell["printed_std"], cell["gamma"], cell["temperature"]) == (
        "0.99",
        "0.07",
        0.5,
        0.75,
    )
    assert cell["value"] == pytest.approx(0.0099)
    cell = only(k24, dataset="cifar10", loss="ce", method="ts", metric="nll")
    assert (cell["printed"], cell["printed_std"], cell["temperature"]) == ("0.16", "0.00", 1.59)
    assert cell["value"] == 0.16
    cell = only(k24, dataset="tinyimagenet", loss="adafocal", method="ts", metric="adaece")
    assert (cell["printed"], cell["printed_std"], cell["temperature"]) == ("2.97", "0.67", 1.10)
    assert cell["row"] == "TINYIMAGENET / ADAFOCAL"


def test_k24_doubts_are_noted(k24):
    notes = k24[k24["note"] != ""]
    one_copy = notes[notes["note"].str.contains("legible in one of the two text copies only")]
    assert one_copy.loc[one_copy["method"] == "ts", "row"].nunique() == 8
    doubtful = notes[notes["note"].str.contains("sign of gamma or temperature doubtful")]
    assert set(zip(doubtful["dataset"], doubtful["loss"], strict=True)) == {
        ("cifar10", "flsd-53"),
        ("cifar100", "flsd-53"),
    }


def test_k24_temperatures_that_move_against_gamma_are_the_noted_ones(k24):
    fitted = k24[k24["metric"] != "accuracy"]
    wide = fitted.pivot_table(index=["dataset", "loss", "metric"], columns="method", values="temperature")
    gamma = fitted[fitted["method"] == "fts"].set_index(["dataset", "loss", "metric"])["gamma"]
    against = ((wide["fts"] - wide["ts"]) * gamma) < 0
    notes = fitted[fitted["method"] == "fts"].set_index(["dataset", "loss", "metric"])["note"]
    assert set(against[against].index) == set(notes[notes.str.contains("doubtful")].index)


@pytest.mark.parametrize("number", M20_TABLES)
def test_m20_table_is_complete(m20, number):
    losses, metric, fits = M20_TABLES[number]
    table = m20[m20["table"] == number]
    cells = set(
        zip(table["dataset"], table["model"], table["loss"], table["method"], table["criterion"], strict=True)
    )
    assert cells == {(*place, loss, *fit) for place in M20_PLACES for loss in losses for fit in fits}
    assert len(table) == len(M20_PLACES) * len(losses) * len(fits)
    assert set(table["metric"]) == {metric}
    assert table["printed"].str.fullmatch(r"\d{1,3}\.\d\d").all()


def test_m20_table_6_is_complete(m20):
    table = m20[m20["table"] == "6"]
    assert len(table) == 24
    assert set(table["model"]) == {"resnet50", "resnet110-bottleneck"}
    assert table.groupby(["model", "loss", "method", "metric"]).size().eq(1).all()
    assert set(table["loss"]) == {"ce", "mmce", ""}
    assert table.loc[table["loss"] == "", "note"].str.contains("not stated").all()


def test_m20_cells_printed_twice_agree(m20):
    named = m20[m20["loss"] != ""]
    unique = published.unique_cells(m20)
    assert len(named) - len(unique) == 190
    assert not unique.duplicated(published.CELL).any()


def test_m20_temperature_one_changes_nothing(m20):
    """Where T* is 1, every score after scaling must be printed as before it."""
    cells = published.unique_cells(m20).set_index(
        ["dataset", "model", "loss", "method", "criterion", "metric"]
    )
    chosen = cells[(cells["temperature"] == 1) & (cells.index.get_level_values("method") == "ts")]
    assert len(chosen) == 9  # 5 by ECE, 4 by AdaECE
    for dataset, model, loss, _, criterion, metric in chosen.index:
        metrics = [metric, "nll", "mce"] if criterion == "ece" else [metric]
        for name in metrics:
            before = cells.loc[(dataset, model, loss, "none", "", name), "printed"]
            assert cells.loc[(dataset, model, loss, "ts", criterion, name), "printed"] == before


def test_m20_largest_gap_is_at_least_the_mean_gap(m20):
    cells = published.unique_cells(m20)
    width = cells[cells["criterion"] != "adaece"].pivot_table(
        index=["dataset", "model", "loss", "method"], columns="metric", values="value"
    )
    assert len(width) == 200
    assert width[["ece", "mce"]].notna().all(axis=None)
    assert (width["mce"] >= width["ece"]).all()


def test_m20_cells_by_value(m20):
    cell = only(m20, table="1", dataset="cifar10", model="resnet50", loss="flsd-53", method="ts")
    assert (cell["printed"], cell["temperature"], cell["column"]) == (
        "0.95",
        1.1,
        "Focal Loss (sample-wise γ 5,3) / Post T",  # noqa: RUF001
    )
    assert only(m20, table="10", dataset="cifar100", model="densenet121", loss="ce")["value"] == 2.0561
    assert only(m20, table="13", dataset="sst-binary", loss="mmce")["printed"] == "32.92"
    assert only(m20, table="9", dataset="20newsgroups", loss="focal-sched-531")["printed"] == "29.16"
    cell = only(m20, table="6", model="resnet50", loss="mmce", method="ts", metric="s99_accuracy")
    assert cell["value"] == 1.0
    merged = only(m20, table="5", dataset="cifar10", model="wrn-26-10", loss="focal-3", method="ts")
    assert (merged["printed"], merged["temperature"]) == ("1.54", 0.9)
    assert "run together" in merged["note"]


def test_names_are_the_suites_own(results):
    for loss in set(results["loss"]) - {""}:
        assert parse_loss(loss).id == loss
    assert set(results["model"]) <= set(MODELS)


def test_a_cell_printed_differently_is_an_error(m20):
    wrong = m20.copy()
    wrong.loc[(wrong["table"] == "7") & (wrong["loss"] == "focal-3"), "printed"] = "9.99"
    with pytest.raises(ValueError, match=r"printed differently: M20 4 CIFAR-100 / ResNet 50"):
        published.unique_cells(wrong)


@pytest.mark.parametrize(
    ("model", "loss", "temperature"),
    [("resnet50", "flsd-53", 1.1), ("resnet110-bottleneck", "brier", 1.2), ("wrn-26-10", "flsd-53", 0.9)],
)
def test_transcription_matches_the_published_networks(m20, model, loss, temperature):
    """Networks reproduce their cells of Tables 1, 3, 7 and 9-13, by definition, to the printed digit."""
    name = f"mukhoti2020-cifar10/{model}-{loss}"
    with np.load(find_network(name).shipped_file) as arrays:
        logits, labels = arrays["test_logits"].astype(float), arrays["test_labels"]
    cells = published.unique_cells(m20)
    cells = cells[(cells["dataset"] == "cifar10") & (cells["model"] == model) & (cells["loss"] == loss)]
    for method, scale in (("none", 1.0), ("ts", temperature)):
        for metric, value in hand_scores(logits / scale, labels).items():
            if method == "ts" and metric == "error":
                continue
            criterion = "" if method == "none" else "ece"
            cell = only(cells, method=method, criterion=criterion, metric=metric)
            assert f"{100 * value:.2f}" == cell["printed"], (method, metric)


def test_m20_cells_are_named_as_they_are_measured(results, m20):
    measured = published.as_measured(results)
    named = measured[measured["paper"] == "M20"]
    assert set(named["method"]) == {"none", "ts-m20"}
    assert set(named["metric"]) == {*m20["metric"]} - {"adaece"} | {"adaece_authors"}
    kept = [name for name in results if name not in {"method", "metric"}]
    pd.testing.assert_frame_equal(measured[kept], results[kept])
    others = measured["paper"] != "M20"
    in_k24 = measured[others].assign(method=measured["method"].replace("fts-k24", "fts"))
    pd.testing.assert_frame_equal(in_k24, results[others])
    assert set(measured.query("method == 'fts-k24'")["metric"]) == {"nll"}
    assert measured.query("method == 'fts'")["metric"].isin(["accuracy", "adaece"]).all()


def hand_scores(logits, labels):
    """Return error, nll, ece and mce (15 equal-width bins) straight from their definitions."""
    probs = np.exp(logits - logits.max(axis=1, keepdims=True))
    probs /= probs.sum(axis=1, keepdims=True)
    confidence, correct = probs.max(axis=1), probs.argmax(axis=1) == labels
    bins = pd.cut(confidence, np.linspace(0, 1, 16), labels=False)
    gaps = pd.DataFrame({"bin": bins, "gap": correct - confidence}).groupby("bin")["gap"]
    return {
        "error": 1 - correct.mean(),
        "nll": -np.log(probs[np.arange(len(labels)), labels]).mean(),
        "ece": gaps.sum().abs().sum() / len(labels),
        "mce": gaps.mean().abs().max(),
    }
