import numpy as np
import pandas as pd
import pytest

from focalcal.data.networks import find_network
from focalcal.reporting.records import published
from focalcal.training.catalogue import parse_loss
from focalcal.training.models.catalogue import MODELS


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


def test_k24_text_holds_for_its_table(k24):
    """FTS has the lower ECE for each baseline, the same accuracy, and sometimes the higher log-loss."""
    wide = k24.pivot_table(index=["dataset", "loss"], columns=["metric", "method"], values="value")
    assert (wide["adaece", "fts"] < wide["adaece", "ts"]).all()
    assert (wide["accuracy", "fts"] == wide["accuracy", "ts"]).all()
    assert (wide["nll", "fts"] > wide["nll", "ts"]).sum() == 5


def test_k24_temperatures_that_move_against_gamma_are_the_noted_ones(k24):
    fitted = k24[k24["metric"] != "accuracy"]
    wide = fitted.pivot_table(index=["dataset", "loss", "metric"], columns="method", values="temperature")
    gamma = fitted[fitted["method"] == "fts"].set_index(["dataset", "loss", "metric"])["gamma"]
    against = ((wide["fts"] - wide["ts"]) * gamma) < 0
    notes = fitted[fitted["method"] == "fts"].set_index(["dataset", "loss", "metric"])["note"]
    assert set(against[against].index) == set(notes[notes.str.contains("doubtful")].index)


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
